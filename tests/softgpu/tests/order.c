/* SOFTGPU_ORDER: the ordered modes. A child process for each, since the mode is read once. */
#include <sys/wait.h>
#include <unistd.h>

#include "tests/softgpu/tests/check.h"
#include "tests/softgpu/tests/kernels.h"

enum { STREAMS = 4, EACH = 6, ALL = STREAMS * EACH };

/* What a child reports. */
struct course {
	unsigned char order[ALL]; /* stream * EACH + number, as they ran */
	_Atomic unsigned count;
	uint32_t racy, synchronised;
	_Atomic unsigned in_caller;
	unsigned failures;
};

struct note {
	struct course *course;
	unsigned char what;
	pid_t thread;
};

static void note(void *data)
{
	struct note *note = data;

	note->course->order[note->course->count++] = note->what;
	note->course->in_caller += gettid() == note->thread;
}

/* Streams that know nothing of each other; two that write the same word; a chain across streams. */
static void take_course(struct course *course)
{
	CUstream streams[STREAMS];
	static struct note notes[ALL];
	CUdeviceptr word, sum;
	CUevent event;
	CUmodule module;
	CUfunction add, fill;
	uint32_t n = 1;

	enter(0);
	OK(cuMemAlloc(&word, 4));
	OK(cuMemAlloc(&sum, 8));
	OK(cuMemsetD32(sum, 0, 1));
	OK(cuMemsetD32(sum + 4, 1, 1));
	OK(cuModuleLoadData(&module, kernels_ptx));
	OK(cuModuleGetFunction(&add, module, "add"));
	for (int s = 0; s < STREAMS; s++)
		OK(cuStreamCreate(&streams[s], CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < EACH; i++)
		for (int s = 0; s < STREAMS; s++) {
			struct note *fresh = &notes[s * EACH + i];
			*fresh = (struct note){course, (unsigned char)(s * EACH + i), gettid()};
			OK(cuLaunchHostFunc(streams[s], note, fresh));
		}
	/* By kernels, whose stores are atomic: TSan would rightly report the race of copies or sets. */
	OK(cuModuleGetFunction(&fill, module, "fill"));
	for (unsigned s = 0; s < STREAMS; s++) {
		void *racing[] = {&word, &s, &n};
		OK(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, streams[s], racing, NULL));
	}
	OK(cuCtxSynchronize());
	OK(cuMemcpyDtoH(&course->racy, word, 4));

	CUdeviceptr from = sum + 4;
	void *parameters[] = {&sum, &from, &n};
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	for (int i = 0; i < ALL; i++) {
		CUstream stream = streams[i % STREAMS];
		if (i > 0)
			OK(cuStreamWaitEvent(stream, event, 0));
		OK(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
		OK(cuMemcpyDtoDAsync(from, sum, 4, stream));
		OK(cuEventRecord(event, stream));
	}
	while (cuEventQuery(event) == CUDA_ERROR_NOT_READY)
		;
	OK(cuMemcpyDtoH(&course->synchronised, sum, 4));
	leave(0);
	course->failures = failures;
}

static struct course course_of(const char *order)
{
	struct course course = {.failures = 1};
	int ends[2], status = -1;

	CHECK(pipe(ends) == 0);
	pid_t child = fork();
	if (child == 0) {
		setenv("SOFTGPU_ORDER", order, 1);
		failures = 0;
		course.failures = 0;
		take_course(&course);
		_exit(write(ends[1], &course, sizeof(course)) == (ssize_t)sizeof(course) ? 0 : 1);
	}
	close(ends[1]);
	CHECK(read(ends[0], &course, sizeof(course)) == (ssize_t)sizeof(course));
	close(ends[0]);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(course.failures == 0);
	return course;
}

/* Everything ran once, and each stream in its own order. */
static bool keeps_streams(const struct course *course)
{
	unsigned next[STREAMS] = {0};

	for (unsigned i = 0; i < course->count; i++) {
		unsigned stream = course->order[i] / EACH;
		if (course->order[i] % EACH != next[stream]++)
			return false;
	}
	return course->count == ALL;
}

static void serial(void)
{
	struct course course = course_of("serial");

	CHECK(keeps_streams(&course));
	for (unsigned i = 0; i < ALL; i++)
		CHECK(course.order[i] == i % STREAMS * EACH + i / STREAMS);
	CHECK(course.in_caller == ALL);
	CHECK(course.racy == STREAMS - 1);
}

static void same_seed_same_course(void)
{
	struct course one = course_of("shuffle:7"), two = course_of("shuffle:7");

	CHECK(keeps_streams(&one));
	CHECK(one.in_caller == ALL);
	CHECK(memcmp(one.order, two.order, sizeof(one.order)) == 0);
	CHECK(one.count == two.count && one.racy == two.racy && one.synchronised == two.synchronised);
}

static void seeds_differ(void)
{
	struct course first = course_of("shuffle:0"), serially = course_of("serial");
	unsigned orders = 0, races = 0;

	for (int seed = 1; seed <= 8; seed++) {
		char order[32];
		snprintf(order, sizeof(order), "shuffle:%d", seed);
		struct course course = course_of(order);
		CHECK(keeps_streams(&course));
		CHECK(course.synchronised == serially.synchronised);
		orders += memcmp(course.order, first.order, sizeof(first.order)) != 0;
		races += course.racy != serially.racy;
	}
	CHECK(orders == 8);
	CHECK(races > 0); /* what nothing orders does come out differently */
}

static void ordinary_agrees(void)
{
	struct course ordinary = course_of(""), serially = course_of("serial");

	CHECK(ordinary.synchronised == serially.synchronised && serially.synchronised != 0);
	CHECK(ordinary.in_caller == 0);
}

static void misspelt_is_ordinary(void)
{
	struct course course = course_of("shuffle:x");

	CHECK(course.in_caller == 0);
	course = course_of("shuffle");
	CHECK(course.in_caller == 0);
}

MAIN(T(serial), T(same_seed_same_course), T(seeds_differ), T(ordinary_agrees), T(misspelt_is_ordinary))
