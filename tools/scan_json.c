#include "tools/scan_json.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void put_text(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;

		/* What is not ASCII is told byte by byte, so that the line is UTF-8 whatever the file held. */
		if (byte < 0x20 || byte >= 0x7f)
			printf("\\u%04x", byte);
		else
			printf(byte == '"' || byte == '\\' ? "\\%c" : "%c", byte);
	}
	putchar('"');
}

typedef char *(*demangle_fn)(const char *name, char *buffer, size_t *length, int *status);

/* By the C++ runtime, where there is one: names that it does not know, and all names without it, stay as they are. */
static void put_demangled(const char *name)
{
	static demangle_fn demangle;
	static bool looked;
	int status = -1;
	char *text = NULL;

	if (!looked) {
		void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);

		looked = true;
		demangle = library ? (demangle_fn)(uintptr_t)dlsym(library, "__cxa_demangle") : NULL;
	}
	if (demangle && name[0] == '_' && name[1] == 'Z')
		text = demangle(name, NULL, NULL, &status);
	put_text(text && status == 0 ? text : name);
	free(text);
}

static void put_param(const struct kernel_paths *paths, const struct scan_param *param)
{
	const char *comma = "";

	printf("{\"index\":%" PRIu32 ",\"offset\":%" PRIu32 ",\"size\":%" PRIu32 ",\"slots\":[", param->index,
	       param->offset, param->bytes);
	for (uint64_t slot = param->offset / 8; slot * 8 < (uint64_t)param->offset + param->bytes; slot++) {
		if (slot >= paths->slot_count)
			break;
		printf("%s{\"offset\":%" PRIu64 ",\"load\":%s,\"store\":%s}", comma, 8 * slot,
		       paths->slots[slot].loaded ? "true" : "false",
		       paths->slots[slot].use == SLOT_STORE ? "true" : "false");
		comma = ",";
	}
	fputs("]}", stdout);
}

static void put_stores(const struct scan_kernel *kernel)
{
	const struct kernel_paths *paths = &kernel->paths;
	size_t kept = paths->store_count < PATHS_STORES ? paths->store_count : PATHS_STORES, base = 0;

	fputs(",\"stores\":[", stdout);
	for (size_t i = 0; i < kept; i++) {
		const char *comma = "";
		uint32_t last = UINT32_MAX;

		printf("%s{\"offset\":%" PRIu32 ",\"op\":\"%s\",\"bases\":[", i ? "," : "", paths->stores[i].offset,
		       paths->stores[i].kind);
		for (; base < kernel->base_count && kernel->bases[base].store <= i; base++) {
			if (kernel->bases[base].store < i || kernel->bases[base].slot == last)
				continue;
			last = kernel->bases[base].slot;
			printf("%s%" PRIu64, comma, (uint64_t)8 * last);
			comma = ",";
		}
		fputs("]}", stdout);
	}
	putchar(']');
}

static void put_values(const struct scan_kernel *kernel)
{
	fputs(",\"for\":[", stdout);
	for (size_t i = 0; i < kernel->value_count; i++)
		printf("%s{\"offset\":%" PRIu32 ",\"value\":%" PRIu32 "}", i ? "," : "", kernel->values[i].offset,
		       kernel->values[i].value);
	putchar(']');
}

/* Stores that go elsewhere than through parameters, as words; other reasons mean that nothing is known. */
static const char *indirect_word(enum paths_reason reason)
{
	switch (reason) {
	case PATHS_TABLE:
		return "table";
	case PATHS_GLOBAL:
		return "global";
	case PATHS_SPLIT:
		return "split";
	case PATHS_NO_BASE:
		return "no base";
	case PATHS_CALL:
		return "call";
	default:
		return NULL;
	}
}

void scan_put_json(const char *file, const struct scan_kernel *kernel)
{
	const struct kernel_paths *paths = &kernel->paths;
	const char *word = indirect_word(paths->reason);

	fputs("{\"file\":", stdout);
	put_text(file);
	printf(",\"arch\":\"%s_%u\",\"kernel\":", kernel->ptx ? "compute" : "sm", kernel->sm);
	put_text(kernel->name);
	fputs(",\"demangled\":", stdout);
	put_demangled(kernel->name);
	printf(",\"verdict\":\"%s\",\"reason\":", paths->reason == PATHS_CLEAR ? "ok" : "unknown");
	if (paths->reason == PATHS_CLEAR)
		fputs("null", stdout);
	else
		put_text(paths_reason_text(paths->reason));
	fputs(",\"params\":[", stdout);
	for (size_t i = 0; i < kernel->param_count; i++) {
		if (i)
			putchar(',');
		put_param(paths, &kernel->params[i]);
	}
	printf(word ? "],\"indirect\":[\"%s\"]" : "],\"indirect\":[]", word);
	put_stores(kernel);
	if (kernel->values)
		put_values(kernel);
	puts("}");
}
