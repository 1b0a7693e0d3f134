// The hierarchy of the scene's triangles.

#import common/layout

@group(0) @binding(19) var<storage, read> bvh_nodes: array<Node>;
@group(0) @binding(20) var<storage, read> bvh_triangles: array<Triangle>;
