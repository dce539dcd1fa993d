#include "shim/report/site.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#include "shim/hook_state.h"
#include "shim/report/library_file.h"
#include "shim/report/native.h"
#include "shim/report/python.h"

void site_prepare(void)
{
	int saved = errno;

	native_prepare();
	errno = saved;
}

/*
 * Interned text is never freed, so what was found of a pointer stays true. The answer is in the pointer's top bit,
 * which no address of a program has.
 */
static bool is_library_file(const char *file)
{
	enum { FILES = 1024 };
	static _Atomic uintptr_t files[FILES];
	const uintptr_t library = (uintptr_t)1 << 63;
	_Atomic uintptr_t *place = &files[((uintptr_t)file >> 3) % FILES];
	uintptr_t known = atomic_load_explicit(place, memory_order_relaxed);

	if ((known & ~library) != (uintptr_t)file) {
		known = (uintptr_t)file | (library_file(file) ? library : 0);
		atomic_store_explicit(place, known, memory_order_relaxed);
	}
	return known & library;
}

HOOK_HOT void site_capture_python(struct site *ret_site)
{
	int saved = errno;

	ret_site->native_count = 0;
	ret_site->python_count =
		python_capture(ret_site->python, SITE_PYTHON_FRAMES, is_library_file, &ret_site->python_cut);
	errno = saved;
}

void site_capture(struct site *ret_site, void *caller)
{
	int saved = errno;

	site_capture_python(ret_site);
	ret_site->native_count = native_capture(ret_site->native, SITE_NATIVE_FRAMES, caller);
	errno = saved;
}

const struct site_frame *site_user_frame(const struct site *site)
{
	for (int i = 0; i < site->python_count; i++)
		if (!is_library_file(site->python[i].file))
			return &site->python[i];
	return site->python_count ? &site->python[0] : NULL;
}

const char *site_library(const struct site *site)
{
	struct native_frame frame;

	for (int i = 0; i < site->native_count; i++) {
		const char *name;

		if (!native_resolve(site->native[i], false, &frame))
			continue;
		name = native_base_name(frame.path);
		if (!native_is_plumbing(name))
			return site_intern(name);
	}
	return "?";
}

const char *site_runtime(const struct site *site)
{
	struct native_frame frame;
	const char *name = NULL;

	for (int i = 0; i < site->native_count; i++) {
		if (!native_resolve(site->native[i], false, &frame) || !native_is_runtime(native_base_name(frame.path)))
			break;
		/* What is inside it has no symbol. */
		if (native_resolve(site->native[i], true, &frame) && frame.symbol)
			name = frame.symbol;
	}
	return name;
}
