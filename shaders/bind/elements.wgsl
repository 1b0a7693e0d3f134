// What a pass over the entries of one parameter reads.

#import common/layout

@group(0) @binding(0) var<uniform> elements: Elements;

// The first entry of an invocation; it goes on in strides of `elements.threads`.
fn first_element(group: vec3u, lane: u32) -> u32 {
    return (group.y * elements.groups_x + group.x) * ELEMENT_GROUP + lane;
}
