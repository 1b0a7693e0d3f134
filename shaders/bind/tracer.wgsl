// Settings of light tracing among surfaces, and the film of a view.

#import common/layout

@group(0) @binding(31) var<uniform> tracer: Tracer;

// Value and scaled slope of a node of the film's filter.
fn filter_node(node: u32) -> vec2f {
    let pair = tracer.table[node / 2u];
    return select(pair.xy, pair.zw, node % 2u == 1u);
}

fn film_filter() -> FilmFilter {
    return FilmFilter(tracer.filter_radius, tracer.nodes, tracer.node_count);
}

fn film_size() -> vec2u {
    return tracer.size;
}
