/*
 * The calls that serving may answer in the driver's place: a row of entrypoints.def with the verdict `serve` calls
 * serve_SYMBOL() where another hook calls the driver. Each has the arguments and the errors of the driver's function,
 * and calls that for what is not served.
 */
#ifndef CUCONST_TWINS_SERVE_CALLS_H
#define CUCONST_TWINS_SERVE_CALLS_H

#include "shim/driver.h"

/* serve.c */
__typeof__(cuMemAlloc_v2) serve_cuMemAlloc_v2;
__typeof__(cuMemFree_v2) serve_cuMemFree_v2;
__typeof__(cuMemFreeAsync) serve_cuMemFreeAsync;
__typeof__(cuMemFreeAsync_ptsz) serve_cuMemFreeAsync_ptsz;

/* serve_attributes.c */
__typeof__(cuMemAllocPitch_v2) serve_cuMemAllocPitch_v2;
__typeof__(cuMemGetAddressRange_v2) serve_cuMemGetAddressRange_v2;
__typeof__(cuMemGetInfo_v2) serve_cuMemGetInfo_v2;
__typeof__(cuPointerGetAttribute) serve_cuPointerGetAttribute;
__typeof__(cuPointerGetAttributes) serve_cuPointerGetAttributes;
__typeof__(cuPointerSetAttribute) serve_cuPointerSetAttribute;
__typeof__(cuIpcGetMemHandle) serve_cuIpcGetMemHandle;
__typeof__(cuMemUnmap) serve_cuMemUnmap;
__typeof__(cuMemAddressFree) serve_cuMemAddressFree;
__typeof__(cuMemSetAccess) serve_cuMemSetAccess;
__typeof__(cuMemGetAccess) serve_cuMemGetAccess;
__typeof__(cuMemRetainAllocationHandle) serve_cuMemRetainAllocationHandle;

/* serve_graphs.c */
__typeof__(cuGraphAddMemsetNode) serve_cuGraphAddMemsetNode;
__typeof__(cuGraphAddNode) serve_cuGraphAddNode;
__typeof__(cuGraphAddNode_v2) serve_cuGraphAddNode_v2;
__typeof__(cuGraphExecMemsetNodeSetParams) serve_cuGraphExecMemsetNodeSetParams;
__typeof__(cuGraphExecNodeSetParams) serve_cuGraphExecNodeSetParams;
__typeof__(cuGraphNodeSetParams) serve_cuGraphNodeSetParams;

/* serve_peers.c */
__typeof__(cuCtxEnablePeerAccess) serve_cuCtxEnablePeerAccess;
__typeof__(cuCtxDisablePeerAccess) serve_cuCtxDisablePeerAccess;

#endif
