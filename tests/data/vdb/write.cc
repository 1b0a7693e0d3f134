// Writes the files of this folder with OpenVDB: g++ -std=c++17 -O1 write.cc -lopenvdb -ltbb -lImath-3_1 -o write && ./write
//
// Voxels are those of tests/vdb.rs: `value` where `active`, on a box from (-5, 3, 120) to (4, 10, 139).

#include <openvdb/openvdb.h>
#include <openvdb/tools/LevelSetSphere.h>

using namespace openvdb;

static bool active(int x, int y, int z) { return (x + 2 * y + 3 * z) % 4 != 0; }
static float value(int x, int y, int z) { return float((x * x * 7 + y * 13 + z / 8 * 29) % 64) / 64.0f; }

// OpenVDB does not compress fog volumes by zlib; files that are to be have no class.
static FloatGrid::Ptr cloud(const char* name, bool half, GridClass kind = GRID_FOG_VOLUME) {
    auto grid = FloatGrid::create(0.0f);
    auto accessor = grid->getAccessor();
    for (int x = -5; x <= 4; x++)
        for (int y = 3; y <= 10; y++)
            for (int z = 120; z <= 139; z++)
                if (active(x, y, z)) accessor.setValueOn(Coord(x, y, z), value(x, y, z));
    grid->setName(name);
    grid->setGridClass(kind);
    grid->setSaveFloatAsHalf(half);
    return grid;
}

static math::Transform::Ptr affine(const double* matrix) {
    return math::Transform::createLinearTransform(Mat4d(matrix));
}

static void write(const char* path, uint32_t compression, const GridPtrVec& grids) {
    io::File file(path);
    file.setCompression(compression);
    file.write(grids);
    file.close();
}

int main() {
    initialize();
    const uint32_t mask = io::COMPRESS_ACTIVE_MASK, zip = io::COMPRESS_ZIP | mask, blosc = io::COMPRESS_BLOSC | mask;
    const double placed[16] = {0.5, 0, 0, 0, 0, 0.5, 0, 0, 0, 0, 0.5, 0, 10, -20, 30, 1};
    const double stretched[16] = {0.5, 0, 0, 0, 0, 1.5, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1};
    const double rotated[16] = {0, 0.5, 0, 0, -0.5, 0, 0, 0, 0, 0, 0.5, 0, 0, 0, 0, 1};

    write("float_mask.vdb", mask, {cloud("density", false)});

    auto grid = cloud("smoke", false, GRID_UNKNOWN);
    grid->setTransform(affine(placed));
    write("float_zip.vdb", zip, {grid});

    auto other = cloud("temperature", false);
    other->fill(CoordBBox(Coord(0), Coord(3)), 9.0f);
    grid = cloud("density", false);
    grid->setTransform(affine(stretched));
    write("float_blosc.vdb", blosc, {other, grid});

    write("half_zip.vdb", zip, {cloud("density", true, GRID_UNKNOWN)});
    write("half_blosc.vdb", blosc, {cloud("density", true)});

    // Tiles of 8 voxels, some of which are inactive, and one of 128; a background that is not zero.
    auto tiles = FloatGrid::create(0.25f);
    tiles->tree().addTile(1, Coord(-8, 0, 8), 2.0f, true);
    tiles->tree().addTile(1, Coord(0, 0, 8), 3.0f, false);
    tiles->tree().addTile(2, Coord(0, 128, 0), 4.0f, true);
    tiles->tree().setValueOn(Coord(-9, 0, 8), 5.0f);
    tiles->tree().setValueOff(Coord(-9, 1, 8), 6.0f);
    tiles->setName("density");
    write("tiles.vdb", zip, {tiles});

    auto sphere = tools::createLevelSetSphere<FloatGrid>(2.0f, Vec3f(4, 4, 4), 1.0f);
    sphere->setName("density");
    write("level_set.vdb", blosc, {sphere});

    auto vectors = Vec3SGrid::create();
    vectors->setName("velocity");
    vectors->tree().setValueOn(Coord(1, 2, 3), Vec3f(1, 2, 3));
    write("vector.vdb", blosc, {vectors});

    grid = FloatGrid::create();
    grid->setName("density");
    grid->tree().setValueOn(Coord(1, 2, 3), 1.0f);
    grid->setTransform(affine(rotated));
    write("rotated.vdb", blosc, {grid});

    auto first = grid->deepCopy(), second = grid->deepCopy();
    first->setName("fuel");
    second->setName("heat");
    write("several.vdb", blosc, {first, second});

    grid = FloatGrid::create();
    grid->setName("density");
    write("empty.vdb", blosc, {grid});
}
