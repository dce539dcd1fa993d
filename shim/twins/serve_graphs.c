/*
 * Nodes that set served memory. Of plain memory the driver knows the context, so a program may leave it out; of mapped
 * memory it knows none, and refuses (580). So the context is filled in, in a copy.
 */
#include <stdint.h>

#include "shim/twins/serve.h"
#include "shim/twins/serve_calls.h"

/* The context that a node is to work in. */
static CUcontext context_for(CUdeviceptr destination, CUcontext asked)
{
	CUcontext context = asked ? NULL : serve_context(destination);
	return context ? context : asked;
}

/* The same parameters, or, in *ret_room, with the context that they lack. */
static CUgraphNodeParams *completed(CUgraphNodeParams *params, CUgraphNodeParams *ret_room)
{
	if (!params || params->type != CU_GRAPH_NODE_TYPE_MEMSET ||
	    context_for(params->memset.dst, params->memset.ctx) == params->memset.ctx)
		return params;
	*ret_room = *params;
	ret_room->memset.ctx = context_for(params->memset.dst, NULL);
	return ret_room;
}

CUresult serve_cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                    size_t numDependencies, const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
	return drv.cuGraphAddMemsetNode(phGraphNode, hGraph, dependencies, numDependencies, memsetParams,
	                                memsetParams ? context_for(memsetParams->dst, ctx) : ctx);
}

CUresult serve_cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                              const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
	return drv.cuGraphExecMemsetNodeSetParams(hGraphExec, hNode, memsetParams,
	                                          memsetParams ? context_for(memsetParams->dst, ctx) : ctx);
}

CUresult serve_cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                              size_t numDependencies, CUgraphNodeParams *nodeParams)
{
	CUgraphNodeParams room;
	return drv.cuGraphAddNode(phGraphNode, hGraph, dependencies, numDependencies, completed(nodeParams, &room));
}

CUresult serve_cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                 const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                 CUgraphNodeParams *nodeParams)
{
	CUgraphNodeParams room;
	return drv.cuGraphAddNode_v2(phGraphNode, hGraph, dependencies, dependencyData, numDependencies,
	                             completed(nodeParams, &room));
}

CUresult serve_cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
	CUgraphNodeParams room;
	return drv.cuGraphNodeSetParams(hNode, completed(nodeParams, &room));
}

CUresult serve_cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
	CUgraphNodeParams room;
	return drv.cuGraphExecNodeSetParams(hGraphExec, hNode, completed(nodeParams, &room));
}
