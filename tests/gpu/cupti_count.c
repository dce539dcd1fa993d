/*
 * Oracle for launch counts: CUPTI's driver-API callbacks, loaded by the driver itself through CUDA_INJECTION64_PATH. Counts every
 * call whose name begins with cuLaunch, and graph launches, and writes "launches graph_launches" to $CUPTI_COUNT_FILE at exit.
 */
#include <cupti.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Atomic unsigned long launches, graph_launches;

static void CUPTIAPI seen(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *info)
{
	const CUpti_CallbackData *call = info;
	if (call->callbackSite != CUPTI_API_ENTER)
		return;
	if (!strncmp(call->functionName, "cuLaunch", 8) && strncmp(call->functionName, "cuLaunchHost", 12))
		atomic_fetch_add(&launches, 1);
	else if (!strncmp(call->functionName, "cuGraphLaunch", 13))
		atomic_fetch_add(&graph_launches, 1);
}

static void write_counts(void)
{
	const char *path = getenv("CUPTI_COUNT_FILE");
	FILE *file = path ? fopen(path, "w") : NULL;
	if (file) {
		fprintf(file, "%lu %lu\n", atomic_load(&launches), atomic_load(&graph_launches));
		fclose(file);
	}
}

__attribute__((visibility("default"))) int InitializeInjection(void)
{
	CUpti_SubscriberHandle subscriber;
	if (cuptiSubscribe(&subscriber, seen, NULL) != CUPTI_SUCCESS ||
	    cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API) != CUPTI_SUCCESS)
		return 0;
	atexit(write_counts);
	return 1;
}
