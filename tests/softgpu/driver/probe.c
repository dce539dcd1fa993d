#include "tests/softgpu/driver/probe.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/softgpu/driver/core.h"
#include "tests/softgpu/driver/resolve.h"
#include "tests/softgpu/softgpu.h"

#define EXPORT __attribute__((visibility("default")))

enum { FAULTS_MAX = 32, TRACE_MAX = 65536, WRITES_MAX = 1 << 20 };

struct fault {
	size_t index;
	uint64_t left; /* calls until it strikes; 0: unused */
	CUresult status;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct fault faults[FAULTS_MAX];
/* How many reasons there are to take the slow way: faults that wait, and the trace. */
static atomic_uint attention;
static bool tracing;
static size_t traced;
static uint16_t trace[TRACE_MAX];
static atomic_uint delay;
static unsigned fault_delay;
static bool fault_in_context;
static atomic_bool logging;
static struct softgpu_write *writes;
static size_t writes_count, writes_capacity;
static uint64_t writes_lost;

static size_t index_of(const struct sg_symbol *symbol)
{
	return (size_t)(symbol - sg_symbols);
}

static bool add_fault(const char *name, uint64_t nth, CUresult status)
{
	const struct sg_symbol *symbol = sg_symbol_named(name);

	if (symbol == NULL || nth == 0)
		return false;
	for (size_t i = 0; i < FAULTS_MAX; i++)
		if (faults[i].left == 0) {
			faults[i] = (struct fault){index_of(symbol), nth, status};
			atomic_fetch_add(&attention, 1);
			return true;
		}
	return false;
}

/*
 * SOFTGPU_FAIL=symbol:nth[:status][,...]. A word that cannot be read is named on stderr: a test with a typing error
 * must not pass silently.
 */
static void read_environment(void)
{
	const char *text = getenv("SOFTGPU_FAIL"), *reach = getenv("SOFTGPU_FAULT");

	atomic_store(&delay, (unsigned)sg_environment("SOFTGPU_DELAY_US", 0));
	fault_delay = (unsigned)sg_environment("SOFTGPU_FAULT_US", 0);
	fault_in_context = reach != NULL && strcmp(reach, "context") == 0;
	if (reach != NULL && !fault_in_context && strcmp(reach, "process") != 0)
		dprintf(STDERR_FILENO, "softgpu: SOFTGPU_FAULT: cannot use \"%s\" (process or context)\n", reach);
	while (text != NULL && *text != '\0') {
		char word[128], name[128];
		size_t length = strcspn(text, ",");
		unsigned long long nth = 0;
		int status = CUDA_ERROR_OUT_OF_MEMORY;
		snprintf(word, sizeof(word), "%.*s", (int)length, text);
		int fields = sscanf(word, "%100[^:]:%llu:%d", name, &nth, &status);
		if (length >= sizeof(word) || fields < 2 || !add_fault(name, nth, (CUresult)status))
			dprintf(STDERR_FILENO, "softgpu: SOFTGPU_FAIL: cannot use \"%s\" (symbol:nth[:status])\n", word);
		text += length + (text[length] == ',');
	}
}

static CUresult look_closer(size_t index)
{
	CUresult status = CUDA_SUCCESS;

	pthread_mutex_lock(&lock);
	if (tracing)
		trace[traced++ % TRACE_MAX] = (uint16_t)index;
	for (size_t i = 0; i < FAULTS_MAX; i++)
		if (faults[i].left != 0 && faults[i].index == index && --faults[i].left == 0) {
			status = faults[i].status;
			atomic_fetch_sub(&attention, 1);
		}
	pthread_mutex_unlock(&lock);
	return status;
}

CUresult sg_probe_call(size_t index)
{
	pthread_once(&once, read_environment);
	atomic_fetch_add_explicit(&sg_calls[index], 1, memory_order_relaxed);
	return atomic_load_explicit(&attention, memory_order_relaxed) == 0 ? CUDA_SUCCESS : look_closer(index);
}

static bool is_quiet(void)
{
	const char *quiet = getenv("SOFTGPU_QUIET");

	return quiet != NULL && strcmp(quiet, "1") == 0;
}

void sg_say(const char *format, ...)
{
	char text[512];
	va_list arguments;

	if (is_quiet())
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	dprintf(STDERR_FILENO, "softgpu: %s\n", text);
}

CUresult sg_unimplemented(size_t index)
{
	static atomic_uchar said[1024];
	CUresult status = sg_probe_call(index);

	if (status != CUDA_SUCCESS)
		return status;
	if (!is_quiet() && index < sizeof(said) && atomic_exchange(&said[index], 1) == 0)
		sg_say("%s is not implemented", sg_symbols[index].name);
	return CUDA_ERROR_NOT_SUPPORTED;
}

unsigned sg_delay_us(void)
{
	return atomic_load_explicit(&delay, memory_order_relaxed);
}

unsigned sg_fault_us(void)
{
	return fault_delay;
}

bool sg_fault_stays_in_context(void)
{
	return fault_in_context;
}

_Bool sg_probe_logs_writes(void)
{
	return atomic_load_explicit(&logging, memory_order_relaxed);
}

void sg_probe_wrote(uint64_t address, size_t bytes)
{
	if (!sg_probe_logs_writes() || bytes == 0)
		return;
	pthread_mutex_lock(&lock);
	struct softgpu_write *last = writes_count > 0 ? &writes[writes_count - 1] : NULL;
	if (last != NULL && last->address + last->bytes == address) {
		last->bytes += bytes;
	} else if (writes_count < writes_capacity) {
		writes[writes_count++] = (struct softgpu_write){address, bytes};
	} else {
		size_t capacity = writes_capacity == 0 ? 1024 : writes_capacity * 2;
		struct softgpu_write *bigger = capacity <= WRITES_MAX ? realloc(writes, capacity * sizeof(*writes))
		                                                      : NULL;
		if (bigger == NULL) {
			writes_lost++;
		} else {
			writes = bigger;
			writes_capacity = capacity;
			writes[writes_count++] = (struct softgpu_write){address, bytes};
		}
	}
	pthread_mutex_unlock(&lock);
}

EXPORT uint64_t softgpu_calls(const char *name)
{
	const struct sg_symbol *symbol = name != NULL ? sg_symbol_named(name) : NULL;

	return symbol == NULL ? UINT64_MAX : atomic_load_explicit(&sg_calls[index_of(symbol)], memory_order_relaxed);
}

EXPORT uint64_t softgpu_calls_total(void)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < sg_symbol_count; i++)
		sum += atomic_load_explicit(&sg_calls[i], memory_order_relaxed);
	return sum;
}

EXPORT void softgpu_reset_calls(void)
{
	for (size_t i = 0; i < sg_symbol_count; i++)
		atomic_store_explicit(&sg_calls[i], 0, memory_order_relaxed);
}

EXPORT void softgpu_trace(bool on)
{
	pthread_mutex_lock(&lock);
	if (on && !tracing)
		atomic_fetch_add(&attention, 1);
	if (!on && tracing)
		atomic_fetch_sub(&attention, 1);
	if (on)
		traced = 0;
	tracing = on;
	pthread_mutex_unlock(&lock);
}

EXPORT const char *softgpu_traced(size_t n)
{
	const char *name = NULL;

	pthread_mutex_lock(&lock);
	size_t oldest = traced > TRACE_MAX ? traced - TRACE_MAX : 0;
	if (n < traced - oldest)
		name = sg_symbols[trace[(oldest + n) % TRACE_MAX]].name;
	pthread_mutex_unlock(&lock);
	return name;
}

EXPORT bool softgpu_fail(const char *symbol, uint64_t nth, int status)
{
	pthread_once(&once, read_environment);
	pthread_mutex_lock(&lock);
	bool added = symbol != NULL && add_fault(symbol, nth, (CUresult)status);
	pthread_mutex_unlock(&lock);
	return added;
}

EXPORT void softgpu_fail_none(void)
{
	pthread_once(&once, read_environment);
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < FAULTS_MAX; i++)
		if (faults[i].left != 0) {
			faults[i].left = 0;
			atomic_fetch_sub(&attention, 1);
		}
	pthread_mutex_unlock(&lock);
}

EXPORT void softgpu_delay_us(unsigned microseconds)
{
	pthread_once(&once, read_environment);
	atomic_store(&delay, microseconds);
}

EXPORT void softgpu_log_writes(bool on)
{
	pthread_mutex_lock(&lock);
	if (on) {
		writes_count = 0;
		writes_lost = 0;
	}
	atomic_store(&logging, on);
	pthread_mutex_unlock(&lock);
}

EXPORT size_t softgpu_writes(struct softgpu_write *out, size_t first, size_t capacity)
{
	pthread_mutex_lock(&lock);
	size_t count = writes_count;
	for (size_t i = 0; i < capacity && first + i < count; i++)
		out[i] = writes[first + i];
	pthread_mutex_unlock(&lock);
	return count;
}

EXPORT uint64_t softgpu_writes_lost(void)
{
	pthread_mutex_lock(&lock);
	uint64_t lost = writes_lost;
	pthread_mutex_unlock(&lock);
	return lost;
}

EXPORT bool softgpu_wrote(uint64_t address, size_t bytes)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < writes_count && !found; i++)
		found = writes[i].address < address + bytes && address < writes[i].address + writes[i].bytes;
	pthread_mutex_unlock(&lock);
	return found;
}
