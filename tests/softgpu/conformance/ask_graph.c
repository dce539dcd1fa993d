/* Graphs: building them, edges, instantiating, launching; editing what is instantiated. */
#include "tests/softgpu/conformance/conformance.h"

static CUDA_MEMSET_NODE_PARAMS set_of(CUdeviceptr memory, unsigned value)
{
	return (CUDA_MEMSET_NODE_PARAMS){.dst = memory, .elementSize = 4, .width = 1, .height = 1, .value = value};
}

static CUcontext current(void)
{
	CUcontext context = NULL;

	NEED(cuCtxGetCurrent(&context));
	return context;
}

static void nothing(void *unused)
{
	(void)unused;
}

static void building(void)
{
	CUgraph graph, clone = NULL;
	CUgraphNode a, b, c, got[4];
	CUdeviceptr memory = device_memory(64);
	CUDA_MEMSET_NODE_PARAMS set = set_of(memory, 5);
	CUDA_KERNEL_NODE_PARAMS launch = {
		.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1};
	CUDA_HOST_NODE_PARAMS host = {.fn = nothing};
	uint32_t value = 6;
	void *parameters[] = {&memory, &value};
	size_t count = 77;
	CUgraphNodeType type = (CUgraphNodeType)77;

	answer_status("create", cuGraphCreate(&graph, 0));
	answer_status("create_null", cuGraphCreate(NULL, 0));
	answer_status("create_flags", cuGraphCreate(&clone, 1));
	answer_status("empty_node", cuGraphAddEmptyNode(&a, graph, NULL, 0));
	answer_status("set_node", cuGraphAddMemsetNode(&b, graph, &a, 1, &set, current()));
	answer_status("kernel_node_no_function", cuGraphAddKernelNode(&c, graph, NULL, 0, &launch));
	answer_status("kernel_node_null", cuGraphAddKernelNode(&c, graph, NULL, 0, NULL));
	launch.func = kernel("store");
	answer_status("kernel_node_no_parameters", cuGraphAddKernelNode(&c, graph, NULL, 0, &launch));
	launch.kernelParams = parameters;
	answer_status("kernel_node", cuGraphAddKernelNode(&c, graph, &b, 1, &launch));
	launch.blockDimX = 2000;
	answer_status("kernel_node_block", cuGraphAddKernelNode(&got[0], graph, NULL, 0, &launch));
	launch.blockDimX = 0;
	answer_status("kernel_node_no_threads", cuGraphAddKernelNode(&got[0], graph, NULL, 0, &launch));
	answer_status("host_node", cuGraphAddHostNode(&got[0], graph, NULL, 0, &host));
	host.fn = NULL;
	answer_status("host_node_null", cuGraphAddHostNode(&got[0], graph, NULL, 0, &host));
	answer_status("set_node_no_context", cuGraphAddMemsetNode(&got[0], graph, NULL, 0, &set, NULL));
	set.elementSize = 3;
	answer_status("set_node_element", cuGraphAddMemsetNode(&got[0], graph, NULL, 0, &set, current()));
	set = set_of(memory, 5);
	set.width = 100;
	answer_status("set_node_past_end", cuGraphAddMemsetNode(&got[0], graph, NULL, 0, &set, current()));
	set = set_of(0x1234, 5);
	answer_status("set_node_garbage", cuGraphAddMemsetNode(&got[0], graph, NULL, 0, &set, current()));
	set = set_of(memory, 5);
	set.width = 0;
	answer_status("set_node_no_width", cuGraphAddMemsetNode(&got[0], graph, NULL, 0, &set, current()));
	answer_status("type", cuGraphNodeGetType(c, &type));
	answer_number("type_value", type);
	answer_status("type_null", cuGraphNodeGetType(NULL, &type));
	NEED(cuGraphGetNodes(graph, NULL, &count));
	answer_number("nodes", (long long)count);
	count = 1;
	answer_status("nodes_some", cuGraphGetNodes(graph, got, &count));
	answer_number("nodes_some_count", (long long)count);
	count = 4;
	answer_status("roots", cuGraphGetRootNodes(graph, got, &count));
	answer_number("roots_count", (long long)count);
	count = 0;
	answer_status("edges", cuGraphGetEdges(graph, NULL, NULL, NULL, &count));
	answer_number("edges_count", (long long)count);
	answer_status("set_parameters_of_kernel", cuGraphMemsetNodeGetParams(c, &set));
	answer_status("clone", cuGraphClone(&clone, graph));
	answer_status("find_in_clone", cuGraphNodeFindInClone(&got[0], a, clone));
	answer_yes("find_in_clone_differs", got[0] != a);
	answer_status("find_in_wrong", cuGraphNodeFindInClone(&got[0], got[0], graph));
	answer_status("destroy_node", cuGraphDestroyNode(b));
	NEED(cuGraphGetEdges(graph, NULL, NULL, NULL, &count));
	answer_number("edges_after_destroy", (long long)count);
	answer_status("destroy_clone", cuGraphDestroy(clone));
	answer_status("destroy", cuGraphDestroy(graph));
	answer_status("destroy_null", cuGraphDestroy(NULL));
}

static void edges(void)
{
	CUgraph graph, other;
	CUgraphNode a, b, c, foreign, twice[2];
	CUgraphExec exec;
	size_t count = 0;

	NEED(cuGraphCreate(&graph, 0));
	NEED(cuGraphCreate(&other, 0));
	NEED(cuGraphAddEmptyNode(&a, graph, NULL, 0));
	NEED(cuGraphAddEmptyNode(&b, graph, &a, 1));
	NEED(cuGraphAddEmptyNode(&foreign, other, NULL, 0));
	answer_status("depend_on_foreign", cuGraphAddEmptyNode(&c, graph, &foreign, 1));
	twice[0] = twice[1] = a;
	answer_status("depend_twice", cuGraphAddEmptyNode(&c, graph, twice, 2));
	answer_status("depend_null_list", cuGraphAddEmptyNode(&c, graph, NULL, 1));
	answer_status("edge_again", cuGraphAddDependencies(graph, &a, &b, NULL, 1));
	answer_status("edge_to_itself", cuGraphAddDependencies(graph, &a, &a, NULL, 1));
	answer_status("edge_foreign", cuGraphAddDependencies(graph, &a, &foreign, NULL, 1));
	answer_status("remove", cuGraphRemoveDependencies(graph, &a, &b, NULL, 1));
	answer_status("remove_again", cuGraphRemoveDependencies(graph, &a, &b, NULL, 1));
	NEED(cuGraphGetEdges(graph, NULL, NULL, NULL, &count));
	answer_number("edges_left", (long long)count);
	NEED(cuGraphAddDependencies(graph, &a, &b, NULL, 1));
	answer_status("cycle", cuGraphAddDependencies(graph, &b, &a, NULL, 1));
	answer_status("cycle_instantiate", cuGraphInstantiate(&exec, graph, 0));
	count = 0;
	answer_status("dependencies", cuGraphNodeGetDependencies(b, NULL, NULL, &count));
	answer_number("dependencies_count", (long long)count);
	answer_status("dependents", cuGraphNodeGetDependentNodes(a, NULL, NULL, &count));
	answer_number("dependents_count", (long long)count);
}

static void running(void)
{
	CUgraph graph, child;
	CUgraphNode a, b, c;
	CUgraphExec exec = NULL, empty = NULL;
	CUdeviceptr memory = device_memory(64);
	CUDA_MEMSET_NODE_PARAMS set = set_of(memory, 5);
	CUstream s;
	unsigned enabled = 77;
	cuuint64_t flags = 77;

	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	NEED(cuGraphCreate(&graph, 0));
	answer_status("instantiate_empty", cuGraphInstantiate(&empty, graph, 0));
	answer_status("launch_empty", cuGraphLaunch(empty, s));
	NEED(cuGraphAddMemsetNode(&a, graph, NULL, 0, &set, current()));
	set.value = 6;
	NEED(cuGraphAddMemsetNode(&b, graph, &a, 1, &set, current()));
	answer_status("instantiate", cuGraphInstantiate(&exec, graph, 0));
	answer_status("instantiate_null", cuGraphInstantiate(NULL, graph, 0));
	answer_status("instantiate_no_graph", cuGraphInstantiate(&empty, NULL, 0));
	answer_status("instantiate_flags", cuGraphInstantiate(&empty, graph, 0x1000));
	answer_status("flags", cuGraphExecGetFlags(exec, &flags));
	answer_number("flags_value", (long long)flags);
	answer_status("launch", cuGraphLaunch(exec, s));
	answer_status("synchronize", cuStreamSynchronize(s));
	answer_number("launched_value", word_at(memory));
	answer_status("launch_null_stream", cuGraphLaunch(exec, NULL));
	answer_status("upload", cuGraphUpload(exec, s));
	answer_status("launch_null", cuGraphLaunch(NULL, s));
	answer_status("enabled", cuGraphNodeGetEnabled(exec, b, &enabled));
	answer_number("enabled_value", enabled);
	answer_status("disable", cuGraphNodeSetEnabled(exec, b, 0));
	NEED(cuGraphLaunch(exec, s));
	NEED(cuStreamSynchronize(s));
	answer_number("disabled_value", word_at(memory));
	answer_status("destroy_graph_keep_exec", cuGraphDestroy(graph));
	answer_status("launch_without_graph", cuGraphLaunch(exec, s));
	answer_status("synchronize_without_graph", cuStreamSynchronize(s));
	answer_status("destroy_exec", cuGraphExecDestroy(exec));
	NEED(cuGraphCreate(&graph, 0));
	NEED(cuGraphCreate(&child, 0));
	set.value = 9;
	NEED(cuGraphAddMemsetNode(&c, child, NULL, 0, &set, current()));
	answer_status("child_node", cuGraphAddChildGraphNode(&a, graph, NULL, 0, child));
	CUgraph embedded = NULL;
	answer_status("child_graph", cuGraphChildGraphNodeGetGraph(a, &embedded));
	answer_yes("child_graph_is_copy", embedded != child && embedded != NULL);
	answer_status("child_destroy_embedded", cuGraphDestroy(embedded));
	NEED(cuGraphInstantiate(&exec, graph, 0));
	NEED(cuGraphLaunch(exec, s));
	NEED(cuStreamSynchronize(s));
	answer_number("child_value", word_at(memory));
	answer_status("disable_child", cuGraphNodeSetEnabled(exec, a, 0));
}

static void generic(void)
{
	CUgraph graph;
	CUgraphNode a, b;
	CUdeviceptr memory = device_memory(64);
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
	CUgraphConditionalHandle handle;
	CUDA_MEM_ALLOC_NODE_PARAMS room = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
	                                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}},
	                                   .bytesize = 4096};
	CUevent event;
	CUgraphExec exec;

	NEED(cuEventCreate(&event, 0));
	NEED(cuGraphCreate(&graph, 0));
	answer_status("add_empty", cuGraphAddNode(&a, graph, NULL, NULL, 0, &p));
	answer_status("add_null", cuGraphAddNode(&a, graph, NULL, NULL, 0, NULL));
	p.reserved0[0] = 1;
	answer_status("add_reserved", cuGraphAddNode(&b, graph, NULL, NULL, 0, &p));
	p = (CUgraphNodeParams){.type = (CUgraphNodeType)99};
	answer_status("add_unknown", cuGraphAddNode(&b, graph, NULL, NULL, 0, &p));
	p = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_MEMSET,
	                        .memset = {.dst = memory, .elementSize = 4, .width = 1, .height = 1}};
	answer_status("add_set", cuGraphAddNode(&b, graph, &a, NULL, 1, &p));
	CUgraphEdgeData edge = {.type = 1};
	answer_status("add_set_programmatic", cuGraphAddNode(&b, graph, &a, &edge, 1, &p));
	answer_status("event_record_node", cuGraphAddEventRecordNode(&b, graph, NULL, 0, event));
	answer_status("event_wait_node", cuGraphAddEventWaitNode(&b, graph, NULL, 0, event));
	answer_status("event_wait_null", cuGraphAddEventWaitNode(&b, graph, NULL, 0, NULL));
	answer_status("alloc_node", cuGraphAddMemAllocNode(&a, graph, NULL, 0, &room));
	answer_yes("alloc_node_address", room.dptr != 0);
	answer_status("free_node", cuGraphAddMemFreeNode(&b, graph, &a, 1, room.dptr));
	answer_status("free_node_again", cuGraphAddMemFreeNode(&b, graph, &a, 1, room.dptr));
	answer_status("free_node_garbage", cuGraphAddMemFreeNode(&b, graph, &a, 1, 0x1234));
	answer_status("alloc_instantiate", cuGraphInstantiate(&exec, graph, 0));
	answer_status("alloc_clone", cuGraphClone(&(CUgraph){NULL}, graph));
	answer_status("alloc_destroy_node", cuGraphDestroyNode(a));
	answer_status("conditional_handle", cuGraphConditionalHandleCreate(&handle, graph, current(), 0, 0));
}

/* Takes what the driver says about a node of these parameters; its bodies on success. */
static CUresult add_conditional(CUgraph graph, CUgraphConditionalHandle handle, unsigned type, unsigned size,
                                CUgraphNode *ret_node, CUgraph **ret_bodies)
{
	CUgraphNodeParams params;

	memset(&params, 0, sizeof(params));
	params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
	params.conditional.handle = handle;
	params.conditional.type = (CUgraphConditionalNodeType)type;
	params.conditional.size = size;
	params.conditional.ctx = current();
	CUresult status = cuGraphAddNode(ret_node, graph, NULL, NULL, 0, &params);
	*ret_bodies = params.conditional.phGraph_out;
	return status;
}

static void do_nothing(void *data)
{
	(void)data;
}

static void conditional(void)
{
	CUgraph graph, other, clone, *bodies;
	CUgraphConditionalHandle handle, spare;
	CUgraphNode node, set, host;
	CUgraphNodeType type;
	CUgraphExec exec;
	CUdeviceptr memory = device_memory(64);
	CUDA_MEMSET_NODE_PARAMS eleven = {.dst = memory, .elementSize = 4, .width = 1, .height = 1, .value = 11};
	CUDA_HOST_NODE_PARAMS function = {do_nothing, NULL};

	NEED(cuGraphCreate(&graph, 0));
	NEED(cuGraphCreate(&other, 0));
	answer_status("conditional_handle_null", cuGraphConditionalHandleCreate(NULL, graph, current(), 0, 0));
	answer_status("conditional_handle_no_graph", cuGraphConditionalHandleCreate(&handle, NULL, current(), 0, 0));
	answer_status("conditional_handle_no_context", cuGraphConditionalHandleCreate(&spare, graph, NULL, 0, 0));
	answer_status("conditional_handle_flags", cuGraphConditionalHandleCreate(&spare, graph, current(), 0, 2));
	NEED(cuGraphConditionalHandleCreate(&handle, graph, current(), 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
	NEED(cuGraphConditionalHandleCreate(&spare, graph, current(), 0, 0));
	answer_status("conditional_node_of_no_handle", add_conditional(graph, 0x123456, 0, 1, &node, &bodies));
	answer_status("conditional_node_size_0", add_conditional(graph, spare, 0, 0, &node, &bodies));
	answer_status("conditional_node_if_3", add_conditional(graph, spare, 0, 3, &node, &bodies));
	answer_status("conditional_node_while_2", add_conditional(graph, spare, 1, 2, &node, &bodies));
	answer_status("conditional_node_type_9", add_conditional(graph, spare, 9, 1, &node, &bodies));
	CUresult added = add_conditional(graph, handle, 0, 2, &node, &bodies);
	answer_status("conditional_node", added);
	if (added != CUDA_SUCCESS)
		return;
	answer_yes("conditional_node_bodies", bodies != NULL && bodies[0] != NULL && bodies[1] != NULL);
	answer_status("conditional_node_type", cuGraphNodeGetType(node, &type));
	answer_number("conditional_node_type_value", type);
	answer_status("conditional_destroy_body", cuGraphDestroy(bodies[1]));
	answer_status("conditional_add_to_body", cuGraphAddMemsetNode(&set, bodies[0], NULL, 0, &eleven, current()));
	answer_status("conditional_clone_with_node", cuGraphClone(&clone, graph));
	answer_status("conditional_child_with_node", cuGraphAddChildGraphNode(&set, other, NULL, 0, graph));
	answer_status("conditional_instantiate", cuGraphInstantiate(&exec, graph, 0));
	answer_status("conditional_launch", cuGraphLaunch(exec, NULL));
	answer_status("conditional_launch_synchronize", cuCtxSynchronize());
	answer_number("conditional_launch_value", word_at(memory));
	answer_status("conditional_host_node_in_body", cuGraphAddHostNode(&host, bodies[1], NULL, 0, &function));
	answer_status("conditional_host_node_in_body_instantiate", cuGraphInstantiate(&exec, graph, 0));
}

/*
 * A handle is a number in its graph on the real driver: that of another graph is taken for the graph's own of that
 * number, which then has its node.
 */
static void conditional_foreign(void)
{
	CUgraph graph, other, *bodies;
	CUgraphConditionalHandle handle, foreign;
	CUgraphNode node;

	NEED(cuGraphCreate(&graph, 0));
	NEED(cuGraphCreate(&other, 0));
	NEED(cuGraphConditionalHandleCreate(&handle, graph, current(), 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
	NEED(cuGraphConditionalHandleCreate(&foreign, other, current(), 0, 0));
	answer_status("conditional_node_of_foreign_handle", add_conditional(graph, foreign, 0, 1, &node, &bodies));
	answer_status("conditional_node_after_foreign_handle", add_conditional(graph, handle, 0, 2, &node, &bodies));
}

static const struct topic topics[] = {
	{.name = "conditional", .ask = conditional, .alone = true},
	{.name = "conditional_foreign", .ask = conditional_foreign, .alone = true},
	{.name = "building", .ask = building},
	{.name = "edges", .ask = edges},
	{.name = "running", .ask = running},
	{.name = "generic", .ask = generic, .alone = true},
	{.name = NULL},
};
const struct family graph_family = {.name = "graph", .topics = topics};

static void updating(void)
{
	CUgraph graph, other, longer;
	CUgraphNode a, b, c;
	CUgraphExec exec;
	CUdeviceptr memory = device_memory(64);
	CUDA_MEMSET_NODE_PARAMS set = set_of(memory, 5);
	CUgraphExecUpdateResultInfo info = {.result = (CUgraphExecUpdateResult)77};
	CUDA_HOST_NODE_PARAMS host = {.fn = nothing};
	CUstream s;

	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	NEED(cuGraphCreate(&graph, 0));
	NEED(cuGraphAddMemsetNode(&a, graph, NULL, 0, &set, current()));
	NEED(cuGraphInstantiate(&exec, graph, 0));
	set.value = 7;
	answer_status("exec_set", cuGraphExecMemsetNodeSetParams(exec, a, &set, current()));
	NEED(cuGraphLaunch(exec, s));
	NEED(cuStreamSynchronize(s));
	answer_number("exec_set_value", word_at(memory));
	set.dst = 0x1234;
	answer_status("exec_set_garbage", cuGraphExecMemsetNodeSetParams(exec, a, &set, current()));
	set = set_of(memory, 8);
	set.height = 2;
	set.pitch = 16;
	answer_status("exec_set_two_rows", cuGraphExecMemsetNodeSetParams(exec, a, &set, current()));
	set = set_of(memory, 8);
	answer_status("node_set", cuGraphMemsetNodeSetParams(a, &set));
	NEED(cuGraphLaunch(exec, s));
	NEED(cuStreamSynchronize(s));
	answer_number("node_set_not_in_exec", word_at(memory));
	answer_status("exec_host_of_set", cuGraphExecHostNodeSetParams(exec, a, &host));
	NEED(cuGraphCreate(&other, 0));
	set.value = 11;
	NEED(cuGraphAddMemsetNode(&b, other, NULL, 0, &set, current()));
	answer_status("exec_node_of_other", cuGraphExecMemsetNodeSetParams(exec, b, &set, current()));
	answer_status("update", cuGraphExecUpdate(exec, other, &info));
	answer_number("update_result", info.result);
	NEED(cuGraphLaunch(exec, s));
	NEED(cuStreamSynchronize(s));
	answer_number("update_value", word_at(memory));
	NEED(cuGraphCreate(&longer, 0));
	NEED(cuGraphAddMemsetNode(&b, longer, NULL, 0, &set, current()));
	NEED(cuGraphAddMemsetNode(&c, longer, &b, 1, &set, current()));
	answer_status("update_longer", cuGraphExecUpdate(exec, longer, &info));
	answer_number("update_longer_result", info.result);
	NEED(cuGraphCreate(&longer, 0));
	NEED(cuGraphAddHostNode(&b, longer, NULL, 0, &host));
	answer_status("update_type", cuGraphExecUpdate(exec, longer, &info));
	answer_number("update_type_result", info.result);
	answer_status("update_null_info", cuGraphExecUpdate(exec, other, NULL));
	answer_status("launch_after_failures", cuGraphLaunch(exec, s));
	answer_status("synchronize", cuStreamSynchronize(s));
}

static void kernel_nodes(void)
{
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec exec;
	CUdeviceptr memory = device_memory(64);
	uint32_t value = 1;
	void *parameters[] = {&memory, &value};
	CUDA_KERNEL_NODE_PARAMS launch = {.func = kernel("store"),
	                                  .gridDimX = 1,
	                                  .gridDimY = 1,
	                                  .gridDimZ = 1,
	                                  .blockDimX = 1,
	                                  .blockDimY = 1,
	                                  .blockDimZ = 1,
	                                  .kernelParams = parameters};
	CUDA_KERNEL_NODE_PARAMS got = {0};
	CUkernelNodeAttrValue attribute = {0};

	NEED(cuGraphCreate(&graph, 0));
	NEED(cuGraphAddKernelNode(&node, graph, NULL, 0, &launch));
	answer_status("get_kernel", cuGraphKernelNodeGetParams(node, &got));
	answer_yes("get_kernel_function", got.func == launch.func);
	answer_yes("get_kernel_kern", got.kern != NULL);
	answer_yes("get_kernel_parameters", got.kernelParams != NULL && *(uint32_t *)got.kernelParams[1] == 1);
	value = 2;
	answer_yes("parameters_were_copied", got.kernelParams != NULL && *(uint32_t *)got.kernelParams[1] == 1);
	NEED(cuGraphInstantiate(&exec, graph, 0));
	answer_status("exec_kernel", cuGraphExecKernelNodeSetParams(exec, node, &launch));
	NEED(cuGraphLaunch(exec, NULL));
	NEED(cuCtxSynchronize());
	answer_number("exec_kernel_value", word_at(memory));
	CUdeviceptr source = memory + 32;
	void *two[] = {&memory, &source};
	launch.func = kernel("load");
	launch.kernelParams = two;
	answer_status("exec_kernel_other_function", cuGraphExecKernelNodeSetParams(exec, node, &launch));
	NEED(cuGraphLaunch(exec, NULL));
	NEED(cuCtxSynchronize());
	answer_number("exec_kernel_other_value", word_at(memory));
	launch.gridDimX = 0;
	answer_status("exec_kernel_no_blocks", cuGraphExecKernelNodeSetParams(exec, node, &launch));
	attribute.cooperative = 1;
	answer_status("attribute_set", cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &attribute));
	attribute.cooperative = 0;
	answer_status("attribute_get", cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &attribute));
	answer_number("attribute_value", attribute.cooperative);
	answer_status("attribute_unknown", cuGraphKernelNodeGetAttribute(node, (CUlaunchAttributeID)99, &attribute));
}

static void user_objects(void)
{
	CUuserObject object;
	CUgraph graph;

	NEED(cuGraphCreate(&graph, 0));
	answer_status("object", cuUserObjectCreate(&object, &graph, nothing, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	answer_status("object_no_flags", cuUserObjectCreate(&(CUuserObject){NULL}, &graph, nothing, 1, 0));
	answer_status("object_no_count",
	              cuUserObjectCreate(&(CUuserObject){NULL}, &graph, nothing, 0, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	answer_status("object_retain", cuGraphRetainUserObject(graph, object, 1, 0));
	answer_status("object_move", cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
	answer_status("object_release", cuGraphReleaseUserObject(graph, object, 1));
	answer_status("object_release_last", cuGraphReleaseUserObject(graph, object, 1));
	answer_status("object_release_too_often", cuGraphReleaseUserObject(graph, object, 1));
}

static const struct topic edit_topics[] = {
	{.name = "updating", .ask = updating},
	{.name = "kernel_nodes", .ask = kernel_nodes},
	{.name = "user_objects", .ask = user_objects, .alone = true},
	{.name = NULL},
};
const struct family graph_edit_family = {.name = "graph_edit", .topics = edit_topics};
