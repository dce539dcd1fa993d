"""A radix-2 FFT in place: bit reversal, then one launch for each level of butterflies."""
import numpy as np
from common import Array, kernels, random, run

reverse, butterfly = kernels(r"""
extern "C" __global__ void reverse(double2 *data, int bits)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, other = __brev(i) >> (32 - bits);
    if (i < other) {
        double2 kept = data[i];
        data[i] = data[other];
        data[other] = kept;
    }
}

extern "C" __global__ void butterfly(double2 *data, int half)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned at = i / half * 2 * half + i % half;
    double sine, cosine;
    sincospi(-(double)(i % half) / half, &sine, &cosine);
    double2 a = data[at], b = data[at + half];
    double2 turned = make_double2(b.x * cosine - b.y * sine, b.x * sine + b.y * cosine);
    data[at] = make_double2(a.x + turned.x, a.y + turned.y);
    data[at + half] = make_double2(a.x - turned.x, a.y - turned.y);
}
""", "reverse", "butterfly")

bits = 11
count = 1 << bits
signal = random.random(count) + 1j * random.random(count)
data = Array(signal)
run(reverse, count // 128, 128, data, np.int32(bits))
for level in range(bits):
    run(butterfly, count // 2 // 128, 128, data, np.int32(1 << level))
error = np.abs(data.download() - np.fft.fft(signal)).max()
assert error < 1e-9, error
print(f"fft_steps: {count} points, in agreement with numpy")
