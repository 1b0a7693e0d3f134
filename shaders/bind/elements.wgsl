// Buffers of a pass over the entries of one parameter.

#import common/layout

@group(0) @binding(0) var<uniform> elements: Elements;

// The first entry of an invocation; further ones follow at a stride of `elements.threads`.
fn first_element(group: vec3u, lane: u32) -> u32 {
    return (group.y * elements.groups_x + group.x) * ELEMENT_GROUP + lane;
}
