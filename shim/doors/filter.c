/*
 * What dlsym.S asks about a name that may be ours.
 *
 * The real look-up comes first and its answer decides, not the name. It is made from here, so its caller is this
 * library; that is right for handles, which do not depend on the caller, and is made up for below where it does.
 */
#include "shim/doors/filter.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>

#include "shim/doors/doors.h"
#include "shim/doors/names.h"
#include "shim/doors/resolve.h"
#include "shim/report/report.h"

static __thread bool filtering __attribute__((tls_model("initial-exec")));

static const struct door_answer not_ours = {NULL, 0};

static struct door_answer decide(void *address)
{
	return (struct door_answer){address, 1};
}

static void *look_up(void *handle, const char *name, const char *version)
{
	void *(*real)(void *, const char *, const char *);
	if (!version)
		return door_dlsym(handle, name);
	*(void **)&real = door_real_dlvsym;
	return real(handle, name, version);
}

/*
 * What the look-up would have answered without this library: the global scope, then the caller's own. Leaves dlerror as
 * a failing one does.
 */
static struct door_answer decide_behind_us(const char *name, const void *caller)
{
	void *found = door_dlsym(RTLD_NEXT, name);
	struct link_map *object = found ? NULL : door_object_at(caller);
	/* The main program's own scope is the global one, in which we come first. */
	if (object && *object->l_name && !door_is_ours(caller))
		found = door_dlsym(object, name);
	return decide(found);
}

static void *swap_driver_function(void *found)
{
	void *hook = door_swap(found);
	const struct link_map *object = hook ? NULL : door_object_at(found);
	if (!object || !door_is_driver(object))
		return hook ? hook : found;
	door_adopt(object);
	hook = door_swap(found);
	const struct link_map *hooked = door_driver();
	if (hooked && hooked != object)
		report_note("two drivers in this process: calls into %s are seen, calls into %s are not",
		            hooked->l_name, object->l_name);
	return hook ? hook : found;
}

static struct door_answer answer_driver(void *handle, const char *name, const char *version, const void *caller)
{
	if (door_in_driver(caller))
		return not_ours;
	if (handle == RTLD_NEXT) {
		/*
		 * From this library `next` is what lies behind it; from the caller it may be the bare driver, so ask
		 * that one.
		 */
		struct link_map *driver = door_driver();
		void *found = driver ? look_up(driver, name, version) : NULL;
		if (found)
			return decide(swap_driver_function(found));
		found = door_dlsym(RTLD_DEFAULT, name);
		return found && door_is_ours(found) ? decide_behind_us(name, caller) : not_ours;
	}
	void *found = look_up(handle, name, version);
	if (!found)
		return not_ours;
	if (door_is_ours(found))
		return door_driver() ? decide(found) : decide_behind_us(name, caller);
	return decide(swap_driver_function(found));
}

static struct door_answer answer_library(void *handle, const char *name, const char *version, const void *caller)
{
	enum name_id id = name_find(name);
	if (id == NAME_COUNT)
		return not_ours;
	char path[PATH_MAX];
	if (handle == RTLD_NEXT)
		return door_dlsym(RTLD_NEXT, name) ? not_ours : decide(NULL);
	void *found = look_up(handle, name, version);
	if (!found)
		return not_ours;
	if (door_is_ours(found))
		return door_find_loaded(name_library(id), path, sizeof path) ? decide(found)
		                                                             : decide_behind_us(name, caller);
	return decide(name_swap(id, found, caller));
}

struct door_answer door_filter(void *handle, const char *name, const char *version, const void *caller)
{
	if (!door_find_libc() || !name || filtering)
		return not_ours;
	bool driver = door_driver_name(name);
	if (!driver && name_find(name) == NAME_COUNT)
		return not_ours;
	int saved = errno;
	filtering = true;
	struct door_answer answer = driver ? answer_driver(handle, name, version, caller)
	                                   : answer_library(handle, name, version, caller);
	filtering = false;
	errno = saved;
	return answer;
}
