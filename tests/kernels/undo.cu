/*
 * Addresses that are made into something else and back before a store that can also go elsewhere, and addresses that lie across 8-byte slots. What each
 * kernel writes stands in undo.txt; `build_cubins` compiles this.
 */
#define KERNEL extern "C" __global__ void
typedef unsigned long long u64;

#pragma pack(push, 1)
struct ByteFirst { char tag; float *out; };
struct ShortFirst { short tag; float *out; int more; };
struct IntFirst { int tag; float *out; };
#pragma pack(pop)
struct Halves { unsigned x, low, high, y; };

/* The compiler must not see that it is undone. */
__device__ __forceinline__ u64 hide(u64 value) { asm volatile("" : "+l"(value)); return value; }
__device__ __forceinline__ void store(u64 at, float *other, int k) { (k > 7 ? other : (float *)at)[threadIdx.x] = k; }

KERNEL thrice(float *p, float *q, int k) { store(hide((u64)p * 3) * 0xaaaaaaaaaaaaaaabull, q, k); }
KERNEL third(float *p, float *q, int k) { store(hide((u64)p * 0xaaaaaaaaaaaaaaabull) * 3, q, k); }
KERNEL five_less_four(float *p, float *q, int k) { store(hide((u64)p * 5) - hide((u64)p * 4), q, k); }
KERNEL up_and_down(float *p, float *q, int k) { store(hide((u64)p << 9) >> 9, q, k); }
KERNEL up_and_down_by(float *p, float *q, int k, int n) { store(hide((u64)p << n) >> n, q, k); }
KERNEL times_unknown(float *p, float *q, int k, u64 a, u64 b) { store(hide((u64)p * a) * b, q, k); }
KERNEL divided(float *p, float *q, int k) { store(hide((u64)p / 7) * 7 + hide((u64)p % 7), q, k); }
KERNEL around(float *p, float *q, int k) { u64 u = hide((u64)p << 7 | (u64)p >> 57); store(u >> 7 | u << 57, q, k); }
KERNEL backwards(float *p, float *q, int k) { store(__brevll(hide(__brevll((u64)p)) + 0), q, k); }
KERNEL inverted(float *p, float *q, int k) { store(~hide(~(u64)p), q, k); }
KERNEL by_double(float *p, float *q, int k) { double d = (double)(u64)p; asm volatile("" : "+d"(d)); store((u64)d, q, k); }
KERNEL by_rounded(float *p, float *q, int k) { double d = rint((double)(u64)p); asm volatile("" : "+d"(d)); store((u64)d, q, k); }
KERNEL byte_first(ByteFirst s, float *q, int k) { store((u64)s.out, q, k); }
KERNEL short_first(ShortFirst s, float *q, int k) { store((u64)s.out, q, k); }
KERNEL int_first(IntFirst s, float *q, int k) { store((u64)s.out, q, k); }
KERNEL halves(Halves s, float *q, int k) { store((u64)s.high << 32 | s.low, q, k); }
KERNEL halves_turned(Halves s, float *q, int k) { store((u64)s.low << 32 | s.high, q, k); }
KERNEL slot_turned(u64 u, float *q, int k) { store(u << 32 | u >> 32, q, k); }
KERNEL table_thrice(float **p, float *q, int k) { store(hide((u64)p[k] * 3) * 0xaaaaaaaaaaaaaaabull, q, k); }
KERNEL byte_index(char a, short b, const float *p, float *q, long long m) { q[a * m + b] = p[b]; }
KERNEL stride(const float *p, float *q, long long n, int k) { q[(threadIdx.x * n + k) * n] = p[k * 5 - threadIdx.x * 4]; }
