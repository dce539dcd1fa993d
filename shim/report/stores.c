#include "shim/report/stores.h"

static size_t list(const struct kernel_paths *paths, uint32_t base, const struct store_site **ret_stores)
{
	size_t kept = paths->store_count < PATHS_STORES ? paths->store_count : PATHS_STORES, count = 0;

	for (size_t i = 0; i < kept; i++) {
		if (paths->stores[i].base != base || !paths->stores[i].kind)
			continue;
		if (count < STORES_LISTED)
			ret_stores[count] = &paths->stores[i];
		count++;
	}
	return count;
}

size_t stores_of(const struct report_code *code, const struct store_site **ret_stores)
{
	size_t count;

	if (!code->paths || !code->paths->stores)
		return 0;
	count = code->slot == UINT32_MAX ? 0 : list(code->paths, code->slot, ret_stores);
	return count ? count : list(code->paths, UINT32_MAX, ret_stores);
}
