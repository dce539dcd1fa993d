/* The command: help, version, and which command was asked for. */
#include "tools/tool.h"

#include <string.h>

#include "shim/cuconst.h"

static const char help[] = "cuconst: `const` for CUDA memory, enforced at run time\n"
			   "\n"
			   "usage: cuconst run [options] -- PROGRAM [argument ...]\n"
			   "       cuconst report [options] LOG ...\n"
			   "       cuconst scan [options] FILE ...\n"
			   "       cuconst --help | --version\n"
			   "\n"
			   "  run       start a program, unchanged, with libcuconst.so preloaded\n"
			   "  report    summarise logs that `cuconst run --log FILE` wrote\n"
			   "  scan      tell through which parameters the kernels of a file store\n"
			   "\n"
			   "cuconst COMMAND --help tells more.\n";

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{"run", run_command},
	{"report", report_command},
	{"scan", scan_command},
};

int main(int argc, char **argv)
{
	if (argc < 2)
		return tool_usage(NULL, "no command: run, report or scan");
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
		fputs(help, stdout);
		return TOOL_OK;
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("cuconst %d.%d.%d\n", CUCONST_VERSION / 10000, CUCONST_VERSION / 100 % 100, CUCONST_VERSION % 100);
		return TOOL_OK;
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(argc - 1, argv + 1);
	}
	return tool_usage(NULL, "unknown command '%s': run, report or scan", argv[1]);
}
