/* cuconst scan: through which parameters each kernel of a file stores. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/scan_image.h"
#include "tools/scan_json.h"
#include "tools/tool.h"

#define BIG_FILE (16 << 20) /* bytes from which progress is shown */

static const char help[] =
	"usage: cuconst scan [options] FILE ...\n"
	"\n"
	"Tells through which of its parameters each kernel can store. FILE is PTX, a cubin, a fatbin, or a shared library or\n"
	"program that holds fatbins. Needs neither a GPU nor a driver. One line per kernel: its name and machine, then\n"
	"\n"
	"  clean      the kernel stores through no parameter\n"
	"  stores     slots that a store, an atomic operation or a copy can go through; '!' marks the only base of a store\n"
	"  loads      slots that are only read through\n"
	"  none       slots that are no address, or are not used as one\n"
	"  indirect   the kernel also stores elsewhere, or could not be read, and why: the other words are then no proof\n"
	"\n"
	"A slot is 8 bytes of the parameters, laid out as for a launch, counted from 0.\n"
	"\n"
	"  --kernel GLOB   only kernels whose (mangled) name matches\n"
	"  --arch sm_NN    only code for that machine\n"
	"  --param OFFSET=VALUE  for this value of the 4 bytes there in the parameters (may be given again): what it decides is\n"
	"                  told as 'for OFFSET=VALUE', where the answer says more for it\n"
	"  --format=json   one JSON object per kernel and line; --json is the same\n"
	"  -h, --help      this text\n"
	"\n"
	"Exit codes: 0; 64 wrong command line; 65 FILE holds no device code, or some that could not be read; 66 FILE could not be\n"
	"opened.\n";

static int compare_kernels(const void *left, const void *right)
{
	const struct scan_kernel *a = left, *b = right;
	int order = strcmp(a->name, b->name);

	if (order == 0 && a->sm != b->sm)
		order = a->sm < b->sm ? -1 : 1;
	return order ? order : (int)a->ptx - (int)b->ptx;
}

/* Names come from the file: nothing of it may steer a terminal. */
static void put_name(const char *name)
{
	for (; *name; name++) {
		unsigned char byte = (unsigned char)*name;

		if (byte < 0x20 || byte >= 0x7f)
			printf("\\x%02x", byte);
		else
			putchar(byte);
	}
}

static void put_slots(const char *title, const struct kernel_paths *paths, enum slot_use use)
{
	const char *comma = " ";
	size_t last;

	for (size_t i = 0; i < paths->slot_count; i = last) {
		last = i + 1;
		if (paths->slots[i].use != use)
			continue;
		/* Runs of equals are put together: structures and arrays have many. */
		while (last < paths->slot_count && paths->slots[last].use == use &&
		       paths->slots[last].only_base == paths->slots[i].only_base)
			last++;
		printf("%s%s%zu", *comma == ' ' ? title : "", comma, i);
		if (last > i + 1)
			printf("-%zu", last - 1);
		fputs(paths->slots[i].only_base ? "!" : "", stdout);
		comma = ",";
	}
}

static void put_text(const struct scan_kernel *kernel)
{
	const struct kernel_paths *paths = &kernel->paths;
	bool stores = false;

	for (size_t i = 0; i < paths->slot_count; i++)
		stores |= paths->slots[i].use == SLOT_STORE;
	put_name(kernel->name);
	printf(" [%s%s%u]:", kernel->ptx ? "ptx " : "", "sm_", kernel->sm);
	if (paths->reason != PATHS_CLEAR) {
		printf(kernel->ptx ? " indirect (%s, line %" PRIu32 ")" : " indirect (%s, offset 0x%" PRIx32 ")",
		       paths_reason_text(paths->reason), paths->reason_offset);
	} else if (!stores) {
		fputs(" clean", stdout);
	}
	put_slots(" stores", paths, SLOT_STORE);
	put_slots(" loads", paths, SLOT_LOAD);
	put_slots(" none", paths, SLOT_NONE);
	for (size_t i = 0; i < kernel->value_count; i++)
		printf("%s%" PRIu32 "=%" PRIu32, i ? "," : " for ", kernel->values[i].offset, kernel->values[i].value);
	putchar('\n');
}

static int put_all(const char *path, struct scan_result *result, bool json, bool filtered)
{
	if (result->count)
		qsort(result->kernels, result->count, sizeof(*result->kernels), compare_kernels);
	for (size_t i = 0; i < result->count; i++) {
		if (json)
			scan_put_json(path, &result->kernels[i]);
		else
			put_text(&result->kernels[i]);
	}
	if (fflush(stdout) != 0) {
		tool_say("the answer could not be written: %s", strerror(errno));
		return TOOL_OS_ERROR;
	}
	if (result->zstd)
		tool_say("%s: %zu image%s packed with zstd, and libzstd.so.1 was not found: install it", path,
		         result->zstd, result->zstd == 1 ? " is" : "s are");
	if (result->damaged)
		tool_say("%s: %zu image%s damaged", path, result->damaged, result->damaged == 1 ? " is" : "s are");
	if (!result->count && !result->zstd && !result->damaged)
		tool_say(filtered ? "%s: no such kernel" : "%s: holds no kernel", path);
	return result->damaged || result->zstd ? TOOL_NO_IMAGE : TOOL_OK;
}

/* A bar on the terminal, redrawn when it grows. */
static void show_progress(void *ctx, size_t done, size_t bytes)
{
	unsigned *shown = ctx, now = (unsigned)(done * 100 / bytes) + 1;
	char bar[51];

	if (now == *shown)
		return;
	*shown = now;
	memset(bar, ' ', sizeof(bar));
	memset(bar, '#', now / 2);
	bar[50] = '\0';
	fprintf(stderr, "\r[%s] %u %%", bar, now - 1);
}

/* Maps the whole file; *ret_file is NULL for an empty one. 0 or negative errno. */
static int map_file(const char *path, void **ret_file, size_t *ret_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), error = 0;
	struct stat st;

	*ret_file = NULL;
	*ret_bytes = 0;
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) != 0) {
		error = -errno;
	} else if (S_ISDIR(st.st_mode)) {
		error = -EISDIR;
	} else if (st.st_size > 0) {
		void *file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);

		error = file == MAP_FAILED ? -errno : 0;
		*ret_file = error ? NULL : file;
		*ret_bytes = error ? 0 : (size_t)st.st_size;
	}
	close(fd);
	return error;
}

static int scan_file(const char *path, const struct scan_filter *wanted, bool json)
{
	struct scan_result result = {.count = 0};
	struct scan_filter filter = *wanted;
	unsigned shown = 0;
	size_t bytes;
	void *file;
	int answer = map_file(path, &file, &bytes);

	if (answer < 0) {
		tool_say("%s: %s", path, strerror(-answer));
		return TOOL_NO_INPUT;
	}
	if (bytes >= BIG_FILE && isatty(STDERR_FILENO)) {
		filter.progress = show_progress;
		filter.ctx = &shown;
	}
	answer = file ? scan_bytes(file, bytes, &filter, &result) : -EINVAL;
	if (filter.progress)
		fputs("\r\033[K", stderr);
	if (answer == -EINVAL) {
		tool_say("%s: holds no device code", path);
		answer = TOOL_NO_IMAGE;
	} else if (answer < 0) {
		tool_say("%s: %s", path, strerror(-answer));
		answer = TOOL_OS_ERROR;
	} else {
		answer = put_all(path, &result, json, filter.glob || filter.sm);
	}
	scan_free(&result);
	if (file)
		munmap(file, bytes);
	return answer;
}

/* sm_90, also with the letter of a variant. 0: nothing of the kind. */
static unsigned read_arch(const char *text)
{
	char *end;
	unsigned long sm;

	if (strncmp(text, "sm_", 3) != 0 || text[3] < '1' || text[3] > '9')
		return 0;
	sm = strtoul(text + 3, &end, 10);
	if (*end == 'a' || *end == 'f')
		end++;
	return *end || sm > 9999 ? 0 : (unsigned)sm;
}

/* OFFSET=VALUE, each decimal or with 0x. */
static bool read_value(const char *text, struct scan_value *value)
{
	char *end;
	unsigned long offset, number;

	errno = 0;
	offset = strtoul(text, &end, 0);
	if (end == text || *text == '-' || *end != '=' || offset % 4 || offset > SCAN_VALUE_BYTES - 4)
		return false;
	text = end + 1;
	number = strtoul(text, &end, 0);
	if (end == text || *text == '-' || *end || errno || number > UINT32_MAX)
		return false;
	*value = (struct scan_value){(uint32_t)offset, (uint32_t)number};
	return true;
}

int scan_command(int argc, char **argv)
{
	static const struct option options[] = {
		{"kernel", required_argument, NULL, 'k'},
		{"arch", required_argument, NULL, 'a'},
		{"json", no_argument, NULL, 'j'},
		{"format", required_argument, NULL, 'f'},
		{"param", required_argument, NULL, 'p'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct scan_value values[SCAN_VALUES_MAX];
	struct scan_filter filter = {.values = values};
	bool json = false;
	int answer, status;

	opterr = 0;
	optind = 0;
	while ((answer = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		switch (answer) {
		case 'h':
			fputs(help, stdout);
			return TOOL_OK;
		case 'k':
			filter.glob = optarg;
			break;
		case 'a':
			filter.sm = read_arch(optarg);
			if (!filter.sm)
				return tool_usage("scan", "--arch %s: must be a machine, such as sm_90", optarg);
			break;
		case 'p':
			if (filter.value_count == SCAN_VALUES_MAX || !read_value(optarg, &values[filter.value_count++]))
				return tool_usage("scan",
				                  "%s: no value of a parameter; one is 0x264=0, at a multiple of 4",
				                  optarg);
			break;
		case 'j':
			json = true;
			break;
		case 'f':
			json = strcmp(optarg, "json") == 0;
			if (!json && strcmp(optarg, "text") != 0)
				return tool_usage("scan", "--format %s: must be text or json", optarg);
			break;
		case ':':
			return tool_usage("scan", "%s: needs a value", argv[optind - 1]);
		default:
			return tool_usage("scan", "%s: unknown option, or one that takes no value", argv[optind - 1]);
		}
	}
	if (optind == argc)
		return tool_usage("scan", "no file to scan: cuconst scan [options] FILE ...");
	/* The worst of all files. */
	for (status = TOOL_OK; optind < argc; optind++) {
		answer = scan_file(argv[optind], &filter, json);
		status = answer > status ? answer : status;
	}
	return status;
}
