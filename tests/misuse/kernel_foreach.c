/*
 * One launch with many protected tensors, as foreach optimizers make: the first 20 are in a by-value struct, the last
 * is an argument of its own. The odd ones are written. Each is named with its own argument and offset (test_misuse.py
 * reads the log).
 *
 * expect log exit 0 "cuconst: violation: kernel foreach (cuLaunchKernel, argument 0) wrote 1 byte of read-only 't01'"
 * expect deny exit 0 "cuconst: denied: kernel foreach (cuLaunchKernel, argument 0) would write read-only 't01'"
 * expect strict exit 86 "cuconst: stopped: kernel foreach (cuLaunchKernel, argument 0) wrote 1 byte of read-only 't01'"
 * expect twins exit 86 "cuconst: stopped: kernel foreach (cuLaunchKernel) would write read-only memory, which the GPU refused: CUDA error 700 from cuStreamSynchronize"
 */
#include "misuse.h"

#define IN_STRUCT 20

int main(void)
{
	static char text[8192];
	CUdeviceptr tensors[IN_STRUCT], last;
	CUmodule foreach;
	CUfunction function;
	char label[8];
	size_t length = (size_t)snprintf(text, sizeof text,
	                                 ".version 7.0\n.target sm_75\n.address_size 64\n"
	                                 ".visible .entry foreach(.param .align 8 .b8 tensors[%d], .param .u64 last)\n"
	                                 "{\n.reg .b64 %%rd<4>;\n.reg .b16 %%rs<2>;\nmov.u16 %%rs1, 7;\n",
	                                 IN_STRUCT * 8);
	start();
	last = p + IN_STRUCT * 64;
	for (int i = 0; i < IN_STRUCT; i++) {
		tensors[i] = p + (CUdeviceptr)i * 64;
		snprintf(label, sizeof label, "t%02d", i);
		protect(tensors[i], 48, label);
		if (i % 2)
			length += (size_t)snprintf(text + length, sizeof text - length,
			                           "ld.param.u64 %%rd1, [tensors+%d];\ncvta.to.global.u64 %%rd2, %%rd1;\n"
			                           "st.global.u8 [%%rd2+%d], %%rs1;\n",
			                           i * 8, i);
	}
	protect(last, 48, "last");
	snprintf(text + length, sizeof text - length,
	         "ld.param.u64 %%rd1, [last];\ncvta.to.global.u64 %%rd2, %%rd1;\nst.global.u8 [%%rd2], %%rs1;\nret;\n}\n");
	CHECK(cuModuleLoadData(&foreach, text));
	CHECK(cuModuleGetFunction(&function, foreach, "foreach"));
	void *params[] = {tensors, &last};
	CUresult result = cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
	EXPECT(refused(result));
	CHECK(cuStreamSynchronize(stream));
	EXPECT(byte_at(p + 64 + 1) == (result ? 1 : 7) && byte_at(p) == 1);
	return 0;
}
