"""Kernels made from a seed, with what each of them writes known by construction.

generate(seed) gives CUDA source and, for each kernel, the 8-byte slots of its parameter block that it stores through. All conditions
depend on parameters or on loaded data, so the compiler cannot decide them and every store stays in the code.
"""
import random

TYPES = ['float', 'double', 'int', 'unsigned char', 'long long', 'short', 'float4']
SCALARS = ['float', 'double', 'int']

PRELUDE = '''
typedef unsigned long long u64;
struct Four { float *p[4]; int n; };
struct Pair { float *out; const float *in; long long stride; };
template <class T> __device__ __forceinline__ T make(float v) { return (T)v; }
template <> __device__ __forceinline__ float4 make<float4>(float v) { return make_float4(v, v + 1, v, v - 1); }
template <class T> __device__ __forceinline__ float value(T v) { return (float)v; }
template <> __device__ __forceinline__ float value<float4>(float4 v) { return v.x + v.w; }
template <class T> __device__ __noinline__ void put(T *p, long long i, float v) { p[i] = make<T>(v); }
template <class T> __device__ __noinline__ float get(const T *p, long long i) { return value(p[i]); }
template <class T> __device__ __noinline__ T *pick(T *a, T *b, int c) { return c > 3 ? a : b; }
__device__ __noinline__ void put_pair(Pair s, long long i, float v) { s.out[i * s.stride] = v + s.in[i]; }
__device__ __noinline__ void put_deep(float **table, int k, long long i, float v) { if (v > 2) table[k & 1][i] = v; }
'''


class Kernel:
    """One kernel being written: its parameters, its body, and what it stores through."""

    def __init__(self, rnd, name):
        self.rnd, self.name, self.conditions = rnd, name, 0
        self.pointers = [rnd.choice(TYPES) for _ in range(rnd.randint(2, 7))]
        self.written = set()  # names: 'p3', 'four.2', 'pair'
        readonly = rnd.sample(range(len(self.pointers)), rnd.randint(0, len(self.pointers) - 1))
        self.writable = [i for i in range(len(self.pointers)) if i not in readonly]
        self.params = ['p%d' % i for i in range(len(self.pointers))]
        self.four, self.pair = rnd.random() < .35, rnd.random() < .3
        for extra, wanted in (('four', self.four), ('pair', self.pair), ('c', rnd.random() < .3)):
            if wanted:
                self.params.insert(rnd.randint(0, len(self.params)), extra)
        self.params += ['n', 'm']
        if 'c' not in self.params:
            self.params.append('c')

    def layout(self):
        offset, slots = 0, {}
        for name in self.params:
            size, align = {'four': (40, 8), 'pair': (24, 8), 'n': (4, 4), 'c': (4, 4)}.get(name, (8, 8))
            offset = (offset + align - 1) // align * align
            slots[name] = offset // 8
            offset += size
        return slots

    def declaration(self):
        star = '* __restrict__ ' if self.rnd.random() < .3 else ' *'
        kinds = {'four': 'Four four', 'pair': 'Pair pair', 'n': 'int n', 'm': 'long long m', 'c': 'int c'}
        return ', '.join(kinds.get(p) or self.pointers[int(p[1:])] + star + p for p in self.params)

    def condition(self):
        self.conditions += 1
        odd = 2 * self.rnd.randint(100, 100000) + 1 + 2 * self.conditions
        return '(((n * %d + __float_as_int(acc)) >> %d) & 1)' % (odd, self.rnd.randint(1, 30))

    def index(self):
        return self.rnd.choice(['i', 'i * n', 'i + m', '(i & 255)', 'i * m + n', '(long long)(int)acc', 'c', 'm', '(unsigned)n', 'i - 1', '0'])

    def expression(self):
        return self.rnd.choice(['acc', 'acc * 2.f + 1.f', '(float)i', 'sinf(acc)', 'acc / (n + 1)', 'sqrtf(acc)', '(float)(n % (c + 3))'])

    def write(self, pointer):
        self.written.add('p%d' % pointer)
        return 'p%d' % pointer

    def two(self, of, written):
        pairs = [(a, b) for a in of for b in of if a < b and self.pointers[a] == self.pointers[b]]
        if not pairs:
            return None
        a, b = self.rnd.choice(pairs)
        if written:
            self.write(a), self.write(b)
        return a, b, self.pointers[a]

    def read(self):
        q = self.rnd.randrange(len(self.pointers))
        kind = self.rnd.random()
        if kind < .6:
            return 'acc += value(p%d[%s]);' % (q, self.index())
        if kind < .8:
            return 'acc += get(p%d, %s);' % (q, self.index())
        both = self.two(range(len(self.pointers)), False)
        return '{ const %s *q = %s ? p%d : p%d; acc += value(q[%s]); }' % (
            both[2], self.condition(), both[0], both[1], self.index()) if both else ';'

    def store(self):
        if not self.writable:
            return ';'
        q = self.rnd.choice(self.writable)
        kind, of = self.rnd.random(), self.pointers[q]
        if kind < .45:
            return '%s[%s] = make<%s>(%s);' % (self.write(q), self.index(), of, self.expression())
        if kind < .6:
            return 'put(%s, %s, %s);' % (self.write(q), self.index(), self.expression())
        if kind < .8 and of in SCALARS:
            call = self.rnd.choice(['atomicAdd', 'atomicAdd', 'atomicExch' if of != 'double' else 'atomicAdd'])
            return '%s(&%s[%s], (%s)acc);' % (call, self.write(q), self.index(), of)
        if kind < .9 and of == 'int':
            return 'acc += atomicCAS(&%s[%s], n, c);' % (self.write(q), self.index())
        return '{ %s *q = %s + n; for (int k = 0; k < c; k++) { q[k] = make<%s>(acc); q += m; } }' % (of, self.write(q), of)

    def detour(self):
        """A pointer that takes a detour before the store."""
        both = self.two(self.writable, True)
        if not both:
            return self.store()
        a, b, of = both
        store = 'q[%s] = make<%s>(acc);' % (self.index(), of)
        return self.rnd.choice([
            '{ %s *q = %s ? p%d : p%d; %s }' % (of, self.condition(), a, b, store),
            '{ %s *q = pick(p%d, p%d, n + c); %s }' % (of, a, b, store),
            '{ %s *l[2] = {p%d, p%d}; %s *q = l[(n + c) & 1]; %s }' % (of, a, b, of, store),
            '{ __shared__ %s *s[2]; if (threadIdx.x == 0) { s[0] = p%d; s[1] = p%d; } __syncthreads(); %s *q = s[n & 1]; %s }' % (of, a, b, of, store),
            '{ u64 u = (u64)(%s ? p%d : p%d); unsigned lo = __shfl_sync(~0u, (unsigned)u, c), hi = __shfl_sync(~0u, (unsigned)(u >> 32), c);'
            ' %s *q = (%s *)((u64)hi << 32 | lo); %s }' % (self.condition(), a, b, of, of, store),
            '{ %s *x = p%d, *y = p%d; for (int k = 0; k < n; k++) { %s *z = x; x = y; y = z; } %s *q = x; %s }' % (of, a, b, of, of, store),
            '{ %s *q; switch (n & 3) { case 0: q = p%d; break; case 1: q = p%d + 1; break; case 2: q = p%d + m; break; default: q = p%d + c; } %s }' % (
                of, a, b, b, a, store),
            '{ u64 u = (u64)(%s ? p%d : p%d); u = (u + 31) & ~(u64)15; %s *q = (%s *)u; %s }' % (self.condition(), a, b, of, of, store),
        ])

    def structure(self):
        choices = []
        if self.four:
            k = self.rnd.randrange(4)
            choices.append(({'four.%d' % k}, 'four.p[%d][%s] = acc;' % (k, self.index())))
            choices.append((set(), 'acc += four.p[%d][%s];' % (k, self.index())))
            if self.rnd.random() < .3:
                choices.append(({'four.%d' % j for j in range(4)}, 'four.p[(n + (int)i) & 3][i] = acc;'))
                choices.append(({'four.0', 'four.1'}, 'put_deep(four.p, n, i, acc);'))
        if self.pair:
            choices.append(({'pair'}, 'put_pair(pair, %s, acc);' % self.index()))
            choices.append(({'pair'}, 'pair.out[i * pair.stride] = acc;'))
            choices.append((set(), 'acc += pair.in[i + pair.stride];'))
        if not choices:
            return self.read()
        written, text = self.rnd.choice(choices)
        self.written |= written
        return text

    def statement(self, depth=0):
        kind = self.rnd.random()
        if kind < .3:
            return self.read()
        if kind < .52:
            return self.store()
        if kind < .66:
            return self.detour()
        if kind < .74:
            return self.structure()
        if kind < .80:
            return 'sh[threadIdx.x & 255] = acc; __syncthreads(); acc += sh[(threadIdx.x * 7) & 255];'
        if kind < .84:
            return 'acc += __shfl_xor_sync(~0u, acc, %d);' % self.rnd.choice([1, 2, 4])
        if depth > 1:
            return ';'
        inner = ' '.join(self.statement(depth + 1) for _ in range(2))
        if kind < .93:
            return 'if (%s) { %s } else { %s }' % (self.condition(), inner, self.statement(depth + 1))
        return 'for (int j = 0; j < n; j++) { %s i += j; }' % inner

    def source(self):
        body = [self.statement() for _ in range(self.rnd.randint(4, 14))]
        last = '' if not self.writable else '\tp%d[i] = make<%s>(acc);\n' % (self.writable[-1], self.pointers[self.writable[-1]])
        if last:
            self.write(self.writable[-1])
        slots = self.layout()
        truth = sorted(slots[w.split('.')[0]] + (int(w.split('.')[1]) if '.' in w else 0) for w in self.written)
        pointer_slots = sorted([slots[p] for p in self.params if p[0] == 'p' and p[1:].isdigit()] +
                               [slots['four'] + k for k in range(4) if self.four] + ([slots['pair'], slots['pair'] + 1] if self.pair else []))
        text = 'extern "C" __global__ void %s(%s)\n{\n' % (self.name, self.declaration())
        text += '\tlong long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;\n\tfloat acc = n;\n\t__shared__ float sh[256];\n'
        return text + ''.join('\t%s\n' % s for s in body) + last + '}\n', truth, pointer_slots


def generate(seed, count=16):
    """CUDA source of `count` kernels, and by name: (slots stored through, slots that hold pointers)."""
    rnd = random.Random(seed)
    source, truth = PRELUDE, {}
    for k in range(count):
        kernel = Kernel(rnd, 'k%d_%d' % (seed, k))
        text, written, pointers = kernel.source()
        source += text
        truth[kernel.name] = (written, pointers)
    return source, truth
