/* paths_of CUBIN...: one line for each kernel: name, reason, then each slot: - L or S; o: only base of some store; c: compared. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/kernels/elf.h"
#include "shim/kernels/paths.h"
#include "tests/kernels/file.h"

int main(int argc, char **argv)
{
	static const char *const reasons[] = {"clear", "table",       "global",       "split",   "no_base",
	                                      "call",  "instruction", "architecture", "damaged", "limit"};
	for (int i = 1; i < argc; i++) {
		size_t bytes;
		void *image = read_whole(argv[i], &bytes);
		struct elf elf;
		if (!image || elf_open(image, bytes, &elf)) {
			fprintf(stderr, "%s: not a cubin\n", argv[i]);
			return 1;
		}
		for (uint32_t k = 0; k < elf.symbol_count; k++) {
			struct elf_symbol symbol;
			struct kernel_paths paths;
			if (elf_symbol_at(&elf, k, &symbol) || symbol.type != ELF_SYMBOL_FUNCTION || !symbol.entry ||
			    !symbol.section)
				continue;
			if (paths_of_cubin(image, bytes, symbol.name, &paths))
				return 1;
			printf("%s %s", symbol.name, reasons[paths.reason]);
			for (size_t slot = 0; slot < paths.slot_count; slot++)
				printf(" %c%s%s", "-LS"[paths.slots[slot].use], paths.slots[slot].only_base ? "o" : "",
				       paths.slots[slot].compared ? "c" : "");
			printf("\n");
			kernel_paths_free(&paths);
		}
		free(image);
	}
	return 0;
}
