// Where paths of light tracing begin. The light is divided into as many cells as the film has pixels; each cell gets as many
// paths as a pixel gets samples.

#import bind/film_place
#import bind/light
#import transport/rays/random
#import transport/rays/sampler

// The point of the light, in [0, 1]², where a path begins. Two samples share one draw of four random numbers.
fn path_place(cell: u32, sample: u32) -> vec2f {
    let drawn = random_uniform(pass_key(), Counter(settings.film.sensor, cell, sample / 2u, WALK));
    let size = settings.film.size;
    let corner = vec2f(f32(cell % size.x), f32(cell / size.x));
    return (corner + select(drawn.zw, drawn.xy, sample % 2u == 0u)) * (vec2f(1.0) / vec2f(size));
}
