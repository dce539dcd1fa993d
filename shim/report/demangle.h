/* Kernel names for people. Thread-safe. */
#ifndef CUCONST_REPORT_DEMANGLE_H
#define CUCONST_REPORT_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The whole demangled name, by the C++ run time when the process has loaded it already (it is never loaded for this; it
 * allocates), else the name alone, as demangle_short(). False, with `out` untouched, when the name is NULL or not
 * mangled. Cut to `size`, always terminated.
 */
bool demangle(const char *name, char *out, size_t size);

/*
 * Qualified function name without template arguments and parameters: `_ZN2at4fillIfEEvPf` gives `at::fill`. Own parser,
 * the same answer in every process. False, with `out` untouched, for what is not mangled or has a form beyond nested
 * and plain names.
 */
bool demangle_short(const char *name, char *out, size_t size);

#endif
