/* The text on stderr, compared exactly: other suites and people's scripts rely on the first lines. */
#include "shim/report/text.h"
#include "tests/unit/report/capture.h"
#include "tests/unit/report/events.h"

static const char *text(const struct report_event *event)
{
	static char out[TEXT_SIZE + 1];
	struct buffer buf = buffer_over(out, TEXT_SIZE);

	text_event(&buf, event, false);
	out[buf.length] = '\0';
	return out;
}

static const char *first_line(const struct report_event *event)
{
	static char line[TEXT_SIZE + 1];

	snprintf(line, sizeof(line), "%s", text(event));
	*strchrnul(line, '\n') = '\0';
	return line;
}

Test(report_text, kernel)
{
	struct report_event event = sample_launch();

	cr_assert_str_eq(
		text(&event),
		"cuconst: violation: kernel fill5 (cuLaunchKernel, argument 0) wrote 4096 bytes of read-only \"x\"\n"
		"  at   train.py:12 in step\n"
		"  into \"x\" [0x7f0000000a00, 0x7f0000001a00) 4096 bytes on device 0, protected at train.py:5 in main; "
		"changed bytes 0..4095 (exact)\n"
		"  by   library ?; action: logged (mode log)\n");
}

Test(report_text, copy)
{
	struct report_event event = sample_copy();

	event.written_start += 64;
	event.written_end += 64;
	event.device = -1;
	cr_assert_str_eq(
		text(&event),
		"cuconst: violation: cuMemcpyDtoD_v2 wrote 64 bytes of read-only \"x\"\n"
		"  at   train.py:12 in step\n"
		"  into \"x\" [0x7f0000000a00, 0x7f0000001a00) 4096 bytes, protected at train.py:5 in main; written bytes 64..127 (exact)\n"
		"  by   library ?; action: logged (mode log)\n");
}

Test(report_text, fault)
{
	struct report_event event = sample_launch();
	struct report_kernel candidates[2] = {*event.kernel, *event.kernel};

	event.evidence = EVIDENCE_WRITTEN;
	event.written_start = event.written_end = event.written_bytes = 0;
	event.fault = "cuStreamSynchronize";
	event.result = 700;
	event.action = ACTION_DENIED;
	cr_assert_str_eq(
		first_line(&event),
		"cuconst: denied: kernel fill5 (cuLaunchKernel, argument 0) would write read-only \"x\", which the GPU "
		"refused: CUDA error 700 from cuStreamSynchronize");
	event.action = ACTION_STOPPED;
	event.fault = "cuconst_at_exit";
	cr_assert_str_eq(
		first_line(&event),
		"cuconst: stopped: kernel fill5 (cuLaunchKernel, argument 0) would write read-only \"x\", which the GPU "
		"refused: CUDA error 700, found at exit");
	event.kernel = NULL;
	event.range = NULL;
	event.api = NULL;
	event.candidates = candidates;
	event.candidate_count = 2;
	cr_assert_str_eq(
		first_line(&event),
		"cuconst: stopped: one of 2 kernel arguments would write read-only memory, which the GPU refused: CUDA error "
		"700, found at exit");
}

Test(report_text, mode_is_named)
{
	struct report_event event = sample_copy();

	setenv("CUCONST_OPTIONS", "mode=deny", 1);
	event.action = ACTION_DENIED;
	cr_assert_str_eq(
		text(&event),
		"cuconst: denied: cuMemcpyDtoD_v2 would write 64 bytes of read-only \"x\"\n"
		"  at   train.py:12 in step\n"
		"  into \"x\" [0x7f0000000a00, 0x7f0000001a00) 4096 bytes on device 0, protected at train.py:5 in main; "
		"kept bytes 0..63 (exact)\n"
		"  by   library ?; action: denied (mode deny)\n");
}

Test(report_text, first_words)
{
	struct report_event event = sample_copy();

	event.action = ACTION_STOPPED;
	cr_assert_str_eq(first_line(&event), "cuconst: stopped: cuMemcpyDtoD_v2 would write 64 bytes of read-only \"x\"");
	cr_assert_not_null(strstr(text(&event), "; kept bytes 0..63 (exact)\n"));
	event.evidence = EVIDENCE_CHANGED;
	cr_assert_str_eq(first_line(&event), "cuconst: stopped: cuMemcpyDtoD_v2 wrote 64 bytes of read-only \"x\"");
	cr_assert_not_null(strstr(text(&event), "; changed bytes 0..63 (exact)\n"));
	event.kind = REPORT_INCONCLUSIVE;
	event.action = ACTION_LOGGED;
	event.written_exact = false;
	cr_assert_str_eq(first_line(&event),
	                 "cuconst: inconclusive: cuMemcpyDtoD_v2 may have written up to 64 bytes of read-only \"x\"");
	event.kind = REPORT_FREED;
	event.action = ACTION_NONE;
	event.api = "cuMemFree_v2";
	event.written_bytes = event.written_start = event.written_end = 0;
	cr_assert_str_eq(first_line(&event), "cuconst: freed: cuMemFree_v2 freed read-only \"x\"");
	event.kind = REPORT_ENDED;
	event.api = "cuCtxDestroy_v2";
	cr_assert_str_eq(first_line(&event),
	                 "cuconst: ended: cuCtxDestroy_v2 ended the protection of read-only \"x\" unchecked");
}

Test(report_text, changes_that_a_check_found)
{
	struct report_event event = sample_copy();

	event.evidence = EVIDENCE_CHANGED;
	event.api = "cuconst_unprotect";
	cr_assert_str_eq(
		first_line(&event),
		"cuconst: violation: an unknown writer wrote 64 bytes of read-only \"x\", found by cuconst_unprotect");
	event.api = "cuconst_at_exit";
	cr_assert_str_eq(first_line(&event),
	                 "cuconst: violation: an unknown writer wrote 64 bytes of read-only \"x\", found at exit");
	event.api = "cuconst_unprotect";
	event.action = ACTION_STOPPED;
	cr_assert_str_eq(
		first_line(&event),
		"cuconst: stopped: an unknown writer wrote 64 bytes of read-only \"x\", found by cuconst_unprotect");
	event.kernel = &sample_kernel;
	cr_assert_str_eq(
		first_line(&event),
		"cuconst: stopped: kernel fill5 (cuconst_unprotect, argument 0) wrote 64 bytes of read-only \"x\"");
}

Test(report_text, library_calls_come_first)
{
	struct report_event event = sample_launch();

	event.outer_api = "cufftExecC2C";
	event.outer_note = "idata=odata";
	cr_assert_str_eq(first_line(&event),
	                 "cuconst: violation: cufftExecC2C(idata=odata) (kernel fill5, cuLaunchKernel, argument 0) wrote "
	                 "4096 bytes of read-only \"x\"");
	event = sample_copy();
	event.outer_api = "cudaMemcpy";
	event.api = "cuMemcpyHtoD_v2";
	cr_assert_str_eq(first_line(&event),
	                 "cuconst: violation: cudaMemcpy (cuMemcpyHtoD_v2) wrote 64 bytes of read-only \"x\"");
	/* Refused by the library's contract, with nothing beneath. */
	event.outer_api = event.api = "cufftExecC2C";
	event.outer_note = "odata";
	event.action = ACTION_DENIED;
	event.written_bytes = 0;
	cr_assert_str_eq(first_line(&event), "cuconst: denied: cufftExecC2C(odata) would write read-only \"x\"");
}

Test(report_text, graphs)
{
	struct report_event event = sample_copy();

	event.api = "cuGraphLaunch";
	event.evidence = EVIDENCE_CHANGED;
	cr_assert_str_eq(first_line(&event), "cuconst: violation: cuGraphLaunch wrote 64 bytes of read-only \"x\"");
	event.graph_node = "memset";
	cr_assert_str_eq(first_line(&event),
	                 "cuconst: violation: cuGraphLaunch (memset node) wrote 64 bytes of read-only \"x\"");
	event.kernel = &sample_kernel;
	event.graph_node = "kernel";
	cr_assert_str_eq(
		first_line(&event),
		"cuconst: violation: kernel fill5 (cuGraphLaunch, argument 0, kernel node) wrote 64 bytes of read-only \"x\"");
}

Test(report_text, what_is_unknown)
{
	struct report_event event = sample_launch();
	struct report_kernel kernel = {.argument = -1, .api = "cuLaunchKernelEx"};
	struct range range = {.start = 16, .end = 17, .label = ""};

	event.kernel = &kernel;
	event.api = NULL;
	event.range = &range;
	event.written_bytes = event.written_start = event.written_end = 0;
	event.site = NULL;
	cr_assert_str_eq(text(&event), "cuconst: violation: an unknown kernel (cuLaunchKernelEx) wrote read-only memory\n"
	                               "  at   unknown place\n"
	                               "  into [0x10, 0x11) 1 byte on device 0\n"
	                               "  by   library ?; action: logged (mode log)\n");
	event.range = NULL;
	event.written_bytes = 1;
	event.written_exact = true;
	cr_assert_str_eq(first_line(&event),
	                 "cuconst: violation: an unknown kernel (cuLaunchKernelEx) wrote 1 byte of read-only memory");
}

Test(report_text, kernel_names_are_short)
{
	struct report_event event = sample_launch();
	struct report_kernel kernel = sample_kernel;

	event.kernel = &kernel;
	kernel.name = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_";
	cr_assert_str_eq(
		first_line(&event),
		"cuconst: violation: kernel at::native::vectorized_elementwise_kernel (cuLaunchKernel, argument 0) wrote "
		"4096 bytes of read-only \"x\"");
}

Test(report_text, candidates)
{
	struct report_event event = sample_copy();
	struct report_kernel kernels[10];

	for (int i = 0; i < 10; i++)
		kernels[i] = (struct report_kernel){
			.name = "other", .argument = i, .api = "cuLaunchKernel", .site = sample_site};
	event.candidates = kernels;
	event.candidate_count = 10;
	event.unverified_launches = 1;
	cr_assert_eq(count_text(text(&event), "  or   kernel other (cuLaunchKernel, argument "), 8);
	cr_assert_not_null(strstr(text(&event), "argument 7) at train.py:12 in step\n"
	                                        "  or   2 more\n"
	                                        "  or   an earlier launch that was not checked\n"));
	kernels[7].code.verdict = "near";
	cr_assert_not_null(strstr(text(&event), "argument 7), which stores beside it, at train.py:12 in step\n"));
	event.unverified_launches = 2;
	cr_assert_not_null(strstr(text(&event), "  or   one of 2 earlier launches that were not checked\n"));
}

/* The fourth line: what the kernel's code says. */
static const char *how(const struct report_event *event)
{
	static char line[512];
	const char *found = strstr(text(event), "  how  ");

	line[0] = '\0';
	if (found)
		snprintf(line, sizeof(line), "%.*s", (int)strcspn(found, "\n"), found);
	return line;
}

Test(report_text, what_the_code_says)
{
	struct report_event event = sample_launch();
	struct report_kernel kernel = sample_kernel;
	struct store_site stores[] = {{.offset = 0x70, .base = 0, .kind = "STG", .file = "fill.cu", .line = 8},
	                              {.offset = 31, .base = UINT32_MAX, .kind = "st.global"},
	                              {.offset = 0x90, .base = 0, .kind = "RED"}};
	struct kernel_paths paths = {.store_count = 3, .stores = stores};

	event.kernel = &kernel;
	cr_assert_str_eq(how(&event), "");
	kernel.code = (struct report_code){.verdict = "stores", .paths = &paths, .slot = 0};
	cr_assert_str_eq(how(&event), "  how  it stores through that argument: STG at 0x70 (fill.cu:8) and 1 more");
	/* No store has only this slot: one of those that have several. */
	kernel.code.slot = 5;
	cr_assert_str_eq(how(&event), "  how  it stores through that argument: st.global in line 31 of its PTX");
	kernel.code =
		(struct report_code){.verdict = "unknown", .reason = "stores through an address loaded from memory"};
	cr_assert_str_eq(how(&event), "  how  its code stores through an address loaded from memory");
	kernel.code = (struct report_code){.verdict = "near"};
	kernel.value = sample_range.start - 1;
	cr_assert_str_eq(how(&event),
	                 "  how  it stores through that argument; the argument points 1 byte before the range");
	kernel.value = sample_range.end;
	cr_assert_str_eq(how(&event), "  how  it stores through that argument; the argument points to the range's end");
	kernel.value = sample_range.end + 40;
	cr_assert_str_eq(how(&event),
	                 "  how  it stores through that argument; the argument points 40 bytes behind the range");
}

Test(report_text, what_a_refusal_leaves_half_done)
{
	struct report_event event = sample_launch();

	event.action = ACTION_DENIED;
	event.outer_api = "cufftExecC2C";
	event.inside_outer = true;
	cr_assert_not_null(strstr(text(&event), "; action: denied (mode log)\n"));
	event.earlier_launches = 1;
	cr_assert_not_null(strstr(text(&event), "; action: denied (mode log), after 1 launch of that call\n"));
	event.earlier_launches = 3;
	cr_assert_not_null(strstr(text(&event), "; action: denied (mode log), after 3 launches of that call\n"));
	event.action = ACTION_LOGGED;
	cr_assert_not_null(strstr(text(&event), "; action: logged (mode log)\n"));
}

Test(report_text, labels_cannot_fake_lines)
{
	struct report_event event = sample_copy();
	struct range range = sample_range;

	range.label = "x\"\ncuconst: \033[2Jall is well \xff";
	event.range = &range;
	cr_assert_str_eq(
		first_line(&event),
		"cuconst: violation: cuMemcpyDtoD_v2 wrote 64 bytes of read-only \"x\"?cuconst: ?[2Jall is well ?\"");
	cr_assert_eq(count_lines(text(&event)), 4);
}

Test(report_text, long_texts_are_cut_and_end_with_a_newline)
{
	static char name[9000], file[9000];
	struct report_event event = sample_launch();
	struct report_kernel kernels[8], kernel = sample_kernel;
	struct range range = sample_range;
	struct site site = {.python = {{file, name, 1}}, .python_count = 1};
	const char *out;

	memset(name, 'n', sizeof(name) - 1);
	memset(file, 'f', sizeof(file) - 1);
	kernel.name = name;
	kernel.site = site;
	for (int i = 0; i < 8; i++)
		kernels[i] = kernel;
	range.label = name;
	event.range = &range;
	event.kernel = &kernel;
	event.site = &site;
	event.outer_api = event.outer_note = name;
	event.candidates = kernels;
	event.candidate_count = 8;
	out = text(&event);
	cr_assert_lt(strlen(first_line(&event)), 1200);
	cr_assert_eq(out[strlen(out) - 1], '\n');
	cr_assert_leq(strlen(out), TEXT_SIZE);
}

Test(report_text, tiny_buffer_still_ends_with_a_newline)
{
	char out[64];
	struct buffer buf = buffer_over(out, sizeof(out));
	struct report_event event = sample_copy();

	text_event(&buf, &event, false);
	cr_assert_eq(out[buf.length - 1], '\n');
	cr_assert(!memcmp(out + buf.length - 4, "...\n", 4));
}

Test(report_text, colour_touches_the_word_only)
{
	char out[TEXT_SIZE + 1];
	struct buffer buf = buffer_over(out, TEXT_SIZE);
	struct report_event event = sample_copy();

	text_event(&buf, &event, true);
	out[buf.length] = '\0';
	cr_assert_eq(strncmp(out, "cuconst: \033[1;31mviolation:\033[0m cuMemcpyDtoD_v2 wrote", 49), 0);
	cr_assert_eq(count_text(out, "\033"), 2);
}

Test(report_text, folded)
{
	char out[TEXT_SIZE + 1];
	struct buffer buf = buffer_over(out, TEXT_SIZE);
	struct fold_site site = {
		.count = 100, .api = "cuLaunchKernel", .kernel = "fill5", .label = "x", .frame = {"train.py", "step", 12}};

	text_folded(&buf, &site, false);
	site = (struct fold_site){.count = 7, .api = "cuMemcpyDtoD_v2", .outer_api = "cudaMemcpy"};
	text_folded(&buf, &site, false);
	site = (struct fold_site){.count = 9, .other = true};
	text_folded(&buf, &site, false);
	out[buf.length] = '\0';
	cr_assert_str_eq(
		out,
		"cuconst: folded: 100 so far like this: kernel fill5 (cuLaunchKernel), read-only \"x\", at train.py:12 in step\n"
		"cuconst: folded: 7 so far like this: cudaMemcpy (cuMemcpyDtoD_v2), read-only memory\n"
		"cuconst: folded: 9 so far at more places than are told apart\n");
}

Test(report_text, summary)
{
	char out[TEXT_SIZE + 1];
	struct buffer buf = buffer_over(out, TEXT_SIZE);
	struct report_summary summary = {
		.ranges_ever = 12, .checked = 30, .verified = 5, .violations = 2, .denied = 1, .suppressed = 3};
	struct output_trouble trouble = {0};

	text_summary(&buf, &summary, 10, &trouble, false);
	summary = (struct report_summary){
		.ranges_ever = 1, .violations = 1, .ended_unverified = 1, .blind = "2 unknown entry points"};
	trouble = (struct output_trouble){.log_lost = 3, .log_errno = ENOSPC, .text_lost = 1, .text_errno = EPIPE};
	text_summary(&buf, &summary, 0, &trouble, false);
	out[buf.length] = '\0';
	cr_assert_str_eq(
		out,
		"cuconst: summary: 12 read-only ranges, 30 calls and launches checked, 5 verified; 2 violations (1 denied), 0 inconclusive, "
		"0 unverified, 3 suppressed, 10 folded\n"
		"cuconst: summary: 1 read-only range, 0 calls and launches checked, 0 verified; 1 violation (0 denied), 0 inconclusive, "
		"0 unverified, 0 suppressed, 0 folded; 1 protection ended unchecked; 3 records lost by the log (No space left on device); "
		"1 record lost by stderr (Broken pipe); not seen: 2 unknown entry points\n");
}
