// The paths of a pass of light tracing: as many begin in each cell of the light, which is cut as the film is, as samples are
// taken of a pixel.

#import bind/film_place
#import bind/light
#import transport/rays/random
#import transport/rays/sampler

// Where on the light a path begins, in [0, 1]². Two paths share four random numbers.
fn path_place(cell: u32, sample: u32) -> vec2f {
    let drawn = random_uniform(pass_key(), Counter(settings.film.sensor, cell, sample / 2u, WALK));
    let size = settings.film.size;
    let corner = vec2f(f32(cell % size.x), f32(cell / size.x));
    return (corner + select(drawn.zw, drawn.xy, sample % 2u == 0u)) * (vec2f(1.0) / vec2f(size));
}
