/* One event with everything in it, for tests to take things out of. */
#ifndef CUCONST_TESTS_EVENTS_H
#define CUCONST_TESTS_EVENTS_H

#include "shim/report/report.h"

static struct range sample_range = {
	.start = 0x7f0000000a00,
	.end = 0x7f0000001a00,
	.handle = 17,
	.label = "x",
	.site = {.file = "train.py", .function = "main", .line = 5},
};

static struct site sample_site = {
	.python = {{"/opt/lib/python3.11/site-packages/lib.py", "inner", 3},
                   {"train.py", "step", 12},
                   {"train.py", "<module>", 40}},
	.python_count = 3,
};

static struct report_kernel sample_kernel = {
	.name = "fill5", .argument = 0, .offset = 0, .value = 0x7f0000000a00, .api = "cuLaunchKernel"};

static inline struct report_event sample_launch(void)
{
	return (struct report_event){
		.kind = REPORT_VIOLATION,
		.evidence = EVIDENCE_CHANGED,
		.action = ACTION_LOGGED,
		.api = "cuLaunchKernel",
		.range = &sample_range,
		.written_start = 0x7f0000000a00,
		.written_end = 0x7f0000001a00,
		.written_bytes = 4096,
		.written_exact = true,
		.kernel = &sample_kernel,
		.site = &sample_site,
	};
}

static inline struct report_event sample_copy(void)
{
	return (struct report_event){
		.kind = REPORT_VIOLATION,
		.evidence = EVIDENCE_WRITTEN,
		.action = ACTION_LOGGED,
		.api = "cuMemcpyDtoD_v2",
		.range = &sample_range,
		.written_start = 0x7f0000000a00,
		.written_end = 0x7f0000000a40,
		.written_bytes = 64,
		.written_exact = true,
		.site = &sample_site,
	};
}

#endif
