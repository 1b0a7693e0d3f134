// Splatting: the reconstruction filter around a film position, as shares of the pixels that it reaches, whose sum is one, and
// the slopes of these by the position.

#import bind/film_place

// The most pixels along an axis that a filter reaches from a place on the film.
const MAX_TAPS: i32 = 33;

// The pixels along an axis that a splat reaches, and what normalises their shares.
struct Taps {
    first: i32,
    count: i32,
    place: f32,
    // One over the sum of values, and the sum of slopes.
    scale: f32,
    slopes: f32,
}

// Value and slope of a filter at `offset` from its centre: the cubic between the nodes around it.
fn lookup(offset: f32) -> vec2f {
    let of_film = film_filter();
    let x = abs(offset) * of_film.nodes;
    let node = min(u32(x), of_film.node_count - 2u);
    let f = x - f32(node);
    let low = filter_node(node);
    let high = filter_node(node + 1u);
    // a + f (da + f (c2 + f c3))
    let rise = high.x - low.x;
    let c3 = low.y + high.y - (rise + rise);
    let c2 = rise - low.y - c3;
    let value = low.x + f * (low.y + f * (c2 + f * c3));
    let slope = (low.y + f * (c2 + c2 + f * (c3 + c3 + c3))) * of_film.nodes;
    return vec2f(value, select(slope, -slope, offset < 0.0));
}

// The first of the pixels along an axis that the filter reaches from a place, and their number.
fn support(at: f32) -> vec2i {
    let radius = film_filter().radius;
    let first = ceil(at - radius - 0.5);
    let last = floor(at + radius - 0.5);
    return vec2i(i32(first), clamp(i32(last - first) + 1, 1, MAX_TAPS));
}

// The pixels along an axis around `place`, in pixels from the film's edge.
fn taps(place: f32) -> Taps {
    let reached = support(place);
    var taps = Taps(reached.x, reached.y, place, 0.0, 0.0);
    var sum = 0.0;
    for (var k = 0; k < taps.count; k++) {
        let found = lookup(place - (f32(taps.first + k) + 0.5));
        sum += found.x;
        taps.slopes += found.y;
    }
    taps.scale = 1.0 / sum;
    return taps;
}

// The share of the pixel `k` places behind the first, and its slope by the place.
fn taps_share(of_axis: Taps, k: i32) -> vec2f {
    let found = lookup(of_axis.place - (f32(of_axis.first + k) + 0.5));
    let share = found.x * of_axis.scale;
    return vec2f(share, (found.y - share * of_axis.slopes) * of_axis.scale);
}
