/*
 * The whole library under many threads, on the software GPU. Each scene knows how many violations it commits, and the
 * library must have counted exactly these: none lost, none made up.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "tests/misuse/misuse.h"

#define THREADS 4

static CUfunction fill_kernel, copy_kernel;
static _Atomic uint64_t expected;
static _Atomic bool stop;

static struct cuconst_stats stats(void)
{
	struct cuconst_stats now = {.size = sizeof now};
	CHECK(cuconst_stats(&now));
	return now;
}

struct worker {
	pthread_t thread;
	CUdeviceptr at, other;
	CUstream stream;
	int value;
};

static void prepare(struct worker *worker, bool own_stream)
{
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuMemAlloc(&worker->at, SIZE));
	CHECK(cuMemAlloc(&worker->other, SIZE));
	CHECK(cuMemsetD8(worker->at, 1, SIZE));
	worker->stream = stream;
	if (own_stream)
		CHECK(cuStreamCreate(&worker->stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuCtxSynchronize());
}

/* The value differs each time: a kernel that stores what was there changes nothing, and is no violation. */
static void store(struct worker *worker)
{
	int count = COUNT;
	worker->value++;
	void *params[] = {&worker->at, &worker->value, &count};
	CHECK(cuLaunchKernel(fill_kernel, COUNT / 256, 1, 1, 256, 1, 1, 0, worker->stream, params, NULL));
}

static void load(struct worker *worker)
{
	int count = COUNT;
	void *params[] = {&worker->at, &worker->other, &count};
	CHECK(cuLaunchKernel(copy_kernel, COUNT / 256, 1, 1, 256, 1, 1, 0, worker->stream, params, NULL));
}

/*
 * One round of everything: a launch that stores, one that only reads, a copy into the range, one beside it, then the
 * end of the protection.
 */
static void round_of_all(struct worker *worker)
{
	cuconst_handle handle;
	struct cuconst_protect_info info = {.size = sizeof info, .stream = worker->stream};
	CHECK(cuconst_protect(worker->at, SIZE, "at", CUCONST_STREAM, &info, &handle));
	load(worker);
	store(worker);
	load(worker);
	CHECK(cuMemsetD8Async(worker->at, (unsigned char)worker->value, 64, worker->stream));
	CHECK(cuMemsetD8Async(worker->other, (unsigned char)worker->value, 64, worker->stream));
	CHECK(cuMemcpyDtoDAsync(worker->at + 128, worker->other, 64, worker->stream));
	store(worker);
	CHECK(cuStreamSynchronize(worker->stream));
	CHECK(cuconst_unprotect(handle)); /* every change was told by the check of its own launch */
	atomic_fetch_add(&expected, 4);
}

static void *own_streams(void *data)
{
	struct worker *worker = data;
	prepare(worker, true);
	for (int i = 0; i < 30; i++)
		round_of_all(worker);
	return NULL;
}

static void *shared_stream(void *data)
{
	struct worker *worker = data;
	prepare(worker, false);
	for (int i = 0; i < 20; i++)
		round_of_all(worker);
	return NULL;
}

static void run(struct worker *workers, void *(*work)(void *))
{
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&workers[i].thread, NULL, work, &workers[i]));
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(workers[i].thread, NULL));
}

static void expect_exact(void)
{
	struct cuconst_stats now = stats();
	if (now.violations != expected || now.ranges || now.unverified || now.inconclusive) {
		fprintf(stderr, "violations %lu of %lu, ranges %lu, unverified %lu, inconclusive %lu\n",
		        (unsigned long)now.violations, (unsigned long)expected, (unsigned long)now.ranges,
		        (unsigned long)now.unverified, (unsigned long)now.inconclusive);
		_exit(99);
	}
}

static void play_own(void)
{
	struct worker workers[THREADS] = {0};
	run(workers, own_streams);
	expect_exact();
}

static void play_shared(void)
{
	struct worker workers[THREADS] = {0};
	run(workers, shared_stream);
	expect_exact();
}

/*
 * One range of all: protected by one thread, written by all of them through calls, and lifted by another thread each
 * time.
 */
static cuconst_handle _Atomic passed;

static void *write_common(void *unused)
{
	CHECK(cuCtxSetCurrent(context));
	for (int i = 0; i < 300; i++) {
		CHECK(cuMemsetD8(p + 64, (unsigned char)i, 16));
		atomic_fetch_add(&expected, 1);
	}
	return NULL;
}

static void *make_handles(void *unused)
{
	CHECK(cuCtxSetCurrent(context));
	for (int i = 0; i < 300; i++) {
		cuconst_handle handle, old;
		CHECK(cuconst_protect(q, SIZE, "q", CUCONST_NO_BASELINE, NULL, &handle));
		old = atomic_exchange(&passed, handle);
		if (old)
			CHECK(cuconst_unprotect(old));
	}
	return NULL;
}

static void *end_handles(void *unused)
{
	while (!atomic_load(&stop)) {
		cuconst_handle old = atomic_exchange(&passed, 0);
		if (old) {
			CHECK(cuconst_unprotect(old));
			EXPECT(cuconst_unprotect(old) == CUCONST_ERROR_STALE_HANDLE);
		}
	}
	return NULL;
}

static void play_common(void)
{
	pthread_t writers[2], maker, ender;
	cuconst_handle handle;
	CHECK(cuconst_protect(p, SIZE, "p", CUCONST_NO_BASELINE, NULL, &handle));
	CHECK(pthread_create(&maker, NULL, make_handles, NULL));
	CHECK(pthread_create(&ender, NULL, end_handles, NULL));
	for (int i = 0; i < 2; i++)
		CHECK(pthread_create(&writers[i], NULL, write_common, NULL));
	CHECK(pthread_join(maker, NULL));
	for (int i = 0; i < 2; i++)
		CHECK(pthread_join(writers[i], NULL));
	atomic_store(&stop, true);
	CHECK(pthread_join(ender, NULL));
	if (passed)
		CHECK(cuconst_unprotect(passed));
	CHECK(cuconst_unprotect(handle));
	expect_exact();
}

/* Graphs of one thread's store, launched while all others protect and lift: each launch of a protected one is found. */
static void *graphs(void *data)
{
	struct worker *worker = data;
	CUgraph graph;
	CUgraphExec first, second, execs[2];
	prepare(worker, true);
	CHECK(cuStreamBeginCapture(worker->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	store(worker);
	CHECK(cuStreamEndCapture(worker->stream, &graph));
	CHECK(cuGraphInstantiate(&first, graph, 0));
	CHECK(cuGraphDestroy(graph));
	CHECK(cuStreamBeginCapture(worker->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	store(worker);
	CHECK(cuStreamEndCapture(worker->stream, &graph));
	CHECK(cuGraphInstantiate(&second, graph, 0));
	CHECK(cuGraphDestroy(graph));
	execs[0] = first;
	execs[1] = second;
	return memcpy(malloc(sizeof execs), execs, sizeof execs);
}

struct graph_worker {
	struct worker worker;
	CUgraphExec *execs;
};

static void *launch_graphs(void *data)
{
	struct graph_worker *of = data;
	struct worker *worker = &of->worker;
	CHECK(cuCtxSetCurrent(context));
	for (int i = 0; i < 30; i++) {
		struct cuconst_protect_info info = {.size = sizeof info, .stream = worker->stream};
		cuconst_handle handle;
		CHECK(cuconst_protect(worker->at, SIZE, "graph", CUCONST_STREAM, &info, &handle));
		CHECK(cuGraphLaunch(of->execs[0], worker->stream));
		CHECK(cuGraphLaunch(of->execs[1], worker->stream));
		CHECK(cuStreamSynchronize(worker->stream));
		CHECK(cuconst_unprotect(handle));
		atomic_fetch_add(&expected, 2);
	}
	return NULL;
}

static void play_graphs(void)
{
	struct graph_worker workers[THREADS] = {0};
	for (int i = 0; i < THREADS; i++)
		workers[i].execs = graphs(&workers[i].worker);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&workers[i].worker.thread, NULL, launch_graphs, &workers[i]));
	for (int i = 0; i < THREADS; i++) {
		CHECK(pthread_join(workers[i].worker.thread, NULL));
		free(workers[i].execs);
	}
	expect_exact();
}

/* Captures that come and go while others protect: none is disturbed, and every baseline is taken in the end. */
static void *capture(void *data)
{
	struct worker *worker = data;
	prepare(worker, true);
	while (!atomic_load(&stop)) {
		CUgraph graph;
		CUgraphExec exec;
		CHECK(cuStreamBeginCapture(worker->stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
		store(worker);
		usleep(200);
		load(worker);
		CHECK(cuStreamEndCapture(worker->stream, &graph));
		CHECK(cuGraphInstantiate(&exec, graph, 0));
		CHECK(cuGraphLaunch(exec, worker->stream));
		CHECK(cuStreamSynchronize(worker->stream));
		CHECK(cuGraphExecDestroy(exec));
		CHECK(cuGraphDestroy(graph));
		usleep(200);
	}
	return NULL;
}

static void *protect_meanwhile(void *data)
{
	struct worker *worker = data;
	cuconst_handle handle;
	CHECK(cuCtxSetCurrent(context));
	for (int i = 0; i < 60; i++) {
		cuconst_result answer = cuconst_protect(worker->at, SIZE, "meanwhile", 0, NULL, &handle);
		EXPECT(answer == CUCONST_OK);
		load(worker);
		CHECK(cuStreamSynchronize(worker->stream));
		answer = cuconst_unprotect(handle);
		EXPECT(answer == CUCONST_OK || answer == CUCONST_ERROR_BUSY || answer == CUCONST_ERROR_CUDA);
	}
	return NULL;
}

static void play_capture(void)
{
	struct worker capturing = {0}, workers[2] = {0};
	for (int i = 0; i < 2; i++)
		prepare(&workers[i], true);
	CHECK(pthread_create(&capturing.thread, NULL, capture, &capturing));
	for (int i = 0; i < 2; i++)
		CHECK(pthread_create(&workers[i].thread, NULL, protect_meanwhile, &workers[i]));
	for (int i = 0; i < 2; i++)
		CHECK(pthread_join(workers[i].thread, NULL));
	atomic_store(&stop, true);
	CHECK(pthread_join(capturing.thread, NULL));
	EXPECT(stats().violations == 0 && stats().ranges == 0);
	/* And the next baseline is there at once. */
	protect(workers[0].at, SIZE, "after");
	store(&workers[0]);
	CHECK(cuStreamSynchronize(workers[0].stream));
	for (int i = 0; i < 200 && !stats().violations; i++)
		usleep(1000);
	EXPECT(stats().violations == 1);
}

/* Many first protections at the same time: the library's own start is run through once. */
static void *first(void *data)
{
	struct worker *worker = data;
	cuconst_handle handle;
	CHECK(cuCtxSetCurrent(context));
	while (!atomic_load(&stop))
		;
	CHECK(cuconst_protect(worker->at, SIZE, "first", 0, NULL, &handle));
	store(worker);
	CHECK(cuStreamSynchronize(worker->stream));
	CHECK(cuconst_unprotect(handle));
	atomic_fetch_add(&expected, 1);
	return NULL;
}

static void play_first(void)
{
	struct worker workers[THREADS] = {0};
	for (int i = 0; i < THREADS; i++) {
		prepare(&workers[i], true);
		CHECK(pthread_create(&workers[i].thread, NULL, first, &workers[i]));
	}
	atomic_store(&stop, true);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(workers[i].thread, NULL));
	expect_exact();
}

/* The process ends while threads are in the middle of launches, checks and protections. */
static void *go_on(void *data)
{
	struct worker *worker = data;
	cuconst_handle handle;
	CHECK(cuCtxSetCurrent(context));
	for (;;) {
		int count = COUNT;
		worker->value++;
		void *params[] = {&worker->at, &worker->value, &count};
		if (cuconst_protect(worker->at, SIZE, "on", 0, NULL, &handle) != CUCONST_OK)
			return NULL;
		if (cuLaunchKernel(fill_kernel, COUNT / 256, 1, 1, 256, 1, 1, 0, worker->stream, params, NULL) !=
		    CUDA_SUCCESS)
			return NULL;
		cuconst_unprotect(handle);
	}
}

static void play_exit(void)
{
	static struct worker workers[THREADS];
	for (int i = 0; i < THREADS; i++) {
		prepare(&workers[i], true);
		CHECK(pthread_create(&workers[i].thread, NULL, go_on, &workers[i]));
	}
	while (stats().violations < 50)
		usleep(1000);
}

/*
 * A pool: each thread reads its own range and stores beside all of them. Nobody runs over, so nothing is found, and
 * each launch is judged for what it is, while ranges come and go around it.
 */
#define BESIDE_ROUNDS 20
#define BESIDE_LAUNCHES 20

static void *beside(void *data)
{
	struct worker *worker = data;
	CUdeviceptr slices = worker->at;
	cuconst_handle handle;
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuMemAlloc(&worker->other, SIZE));
	CHECK(cuStreamCreate(&worker->stream, CU_STREAM_NON_BLOCKING));
	for (int round = 0; round < BESIDE_ROUNDS; round++) {
		struct cuconst_protect_info info = {.size = sizeof info, .stream = worker->stream};
		CHECK(cuconst_protect(slices + SIZE, SIZE, "slice", CUCONST_STREAM, &info, &handle));
		for (int i = 0; i < BESIDE_LAUNCHES; i++) {
			worker->at = slices;
			store(worker);
			worker->at = slices + SIZE;
			load(worker);
		}
		CHECK(cuStreamSynchronize(worker->stream));
		CHECK(cuconst_unprotect(handle));
	}
	return NULL;
}

static void play_beside(void)
{
	struct worker workers[THREADS] = {0};
	CUdeviceptr pool;
	cuconst_handle last;
	CHECK(cuMemAlloc(&pool, (size_t)(2 * THREADS + 1) * SIZE));
	CHECK(cuMemsetD8(pool, 1, (size_t)(2 * THREADS + 1) * SIZE));
	CHECK(cuCtxSynchronize());
	/* As long as one is protected all of the pool is of concern. */
	CHECK(cuconst_protect(pool + 2 * THREADS * SIZE, SIZE, "last", 0, NULL, &last));
	for (int i = 0; i < THREADS; i++)
		workers[i].at = pool + (CUdeviceptr)i * 2 * SIZE;
	run(workers, beside);
	CHECK(cuconst_unprotect(last));
	expect_exact();
	struct cuconst_stats now = stats();
	uint64_t each = THREADS * BESIDE_ROUNDS * BESIDE_LAUNCHES;
	EXPECT(now.near == each && now.clean && now.clean <= each && now.stores + now.unknown == 0);
	EXPECT(now.verified < now.near + now.clean);
}

/*
 * What is remembered of a launch while all threads launch the same kernels, their ranges come and go, and modules too:
 * each launch is judged for what is protected then.
 */
#define AGAIN_ROUNDS 40
#define AGAIN_BEFORE 10
#define AGAIN_INSIDE 2
#define AGAIN_AFTER 6

static void *again(void *data)
{
	struct worker *worker = data;
	cuconst_handle kept, handle;
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuMemAlloc(&worker->at, 3 * SIZE));
	CHECK(cuMemAlloc(&worker->other, SIZE));
	CHECK(cuMemsetD8(worker->at, 1, 3 * SIZE));
	CHECK(cuStreamCreate(&worker->stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuconst_protect(worker->at + 2 * SIZE, SIZE, "kept", 0, NULL, &kept));
	for (int round = 0; round < AGAIN_ROUNDS; round++) {
		struct cuconst_protect_info info = {.size = sizeof info, .stream = worker->stream};
		for (int i = 0; i < AGAIN_BEFORE; i++)
			store(worker);
		CHECK(cuconst_protect(worker->at, SIZE, "again", CUCONST_STREAM, &info, &handle));
		for (int i = 0; i < AGAIN_INSIDE; i++) {
			load(worker);
			store(worker);
		}
		CHECK(cuStreamSynchronize(worker->stream));
		CHECK(cuconst_unprotect(handle));
		for (int i = 0; i < AGAIN_AFTER; i++)
			store(worker);
	}
	CHECK(cuStreamSynchronize(worker->stream));
	CHECK(cuconst_unprotect(kept));
	atomic_fetch_add(&expected, AGAIN_ROUNDS * AGAIN_INSIDE);
	return NULL;
}

static void *load_and_unload(void *unused)
{
	static const char text[] = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry none()\n{\nret;\n}\n";
	CUmodule loaded;
	CHECK(cuCtxSetCurrent(context));
	while (!atomic_load(&stop)) {
		CHECK(cuModuleLoadData(&loaded, text));
		CHECK(cuModuleUnload(loaded));
		usleep(200);
	}
	return NULL;
}

static void play_again(void)
{
	struct worker workers[THREADS] = {0};
	pthread_t loading;
	CHECK(pthread_create(&loading, NULL, load_and_unload, NULL));
	run(workers, again);
	atomic_store(&stop, true);
	CHECK(pthread_join(loading, NULL));
	expect_exact();
	struct cuconst_stats now = stats();
	EXPECT(now.near == THREADS * AGAIN_ROUNDS * (AGAIN_BEFORE + AGAIN_AFTER));
	EXPECT(now.stores == THREADS * AGAIN_ROUNDS * AGAIN_INSIDE && now.clean && now.clean <= now.stores &&
	       !now.unknown);
}

/*
 * strict: all threads launch with twins of the same memory again and again, from places in turns, while streams, contexts and modules come and go. The kernel stores nothing, so
 * none is compared, blamed or missed.
 */
#define TWINS_ROUNDS 200
#define TWINS_INSIDE 10

static __attribute__((noinline)) void fill_none(struct worker *worker)
{
	int count = 0;
	void *params[] = {&worker->at, &worker->value, &count};
	CHECK(cuLaunchKernel(fill_kernel, 1, 1, 1, 32, 1, 1, 0, worker->stream, params, NULL));
	EXPECT(params[0] == &worker->at && worker->at == worker->other);
}

static __attribute__((noinline)) void fill_none_elsewhere(struct worker *worker)
{
	fill_none(worker);
	__asm__ volatile("");
}

static void *launch_with_twins(void *data)
{
	struct worker *worker = data;
	CUevent event;
	CHECK(cuCtxSetCurrent(context));
	worker->at = worker->other = p + 8;
	for (int round = 0; round < TWINS_ROUNDS; round++) {
		CHECK(cuStreamCreate(&worker->stream, CU_STREAM_NON_BLOCKING));
		CHECK(cuEventCreate(&event, 0));
		for (int i = 0; i < TWINS_INSIDE; i++)
			(i % 2 ? fill_none : fill_none_elsewhere)(worker);
		CHECK(cuEventRecord(event, worker->stream));
		CHECK(round % 2 ? cuEventSynchronize(event) : cuStreamSynchronize(worker->stream));
		CHECK(cuEventDestroy(event));
		CHECK(cuStreamDestroy(worker->stream));
	}
	return NULL;
}

/* Each end of a context looks through what is noted. */
static void *come_and_go(void *unused)
{
	CUcontext other;
	while (!atomic_load(&stop)) {
		CHECK(cuCtxCreate(&other, NULL, 0, 0));
		CHECK(cuCtxDestroy(other));
		usleep(200);
	}
	return NULL;
}

static void play_twins(void)
{
	struct worker workers[THREADS] = {0};
	pthread_t loading, coming;
	cuconst_handle handle;
	CHECK(cuconst_protect(p, SIZE, "p", 0, NULL, &handle));
	CHECK(pthread_create(&loading, NULL, load_and_unload, NULL));
	CHECK(pthread_create(&coming, NULL, come_and_go, NULL));
	run(workers, launch_with_twins);
	atomic_store(&stop, true);
	CHECK(pthread_join(loading, NULL));
	CHECK(pthread_join(coming, NULL));
	EXPECT(stats().stores == THREADS * TWINS_ROUNDS * TWINS_INSIDE && !stats().verified);
	CHECK(cuconst_unprotect(handle));
	expect_exact();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*play)(void);
	} scenes[] = {{"own", play_own},       {"shared", play_shared},   {"common", play_common},
	              {"graphs", play_graphs}, {"capture", play_capture}, {"first", play_first},
	              {"exit", play_exit},     {"beside", play_beside},   {"again", play_again},
	              {"twins", play_twins}};
	start();
	fill_kernel = kernel("fill");
	copy_kernel = kernel("copy");
	for (size_t i = 0; argc > 1 && i < sizeof scenes / sizeof *scenes; i++)
		if (!strcmp(scenes[i].name, argv[1])) {
			scenes[i].play();
			return 0;
		}
	fprintf(stderr, "no such scene\n");
	return 98;
}
