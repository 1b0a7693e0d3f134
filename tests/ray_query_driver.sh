#!/usr/bin/env bash
# Fetches a software driver with ray queries, Mesa's of Debian's backports, and unpacks it into FOLDER beside the one that is
# installed, whose libraries it needs. The last line says what VK_DRIVER_FILES is to be.
#
#     tests/ray_query_driver.sh FOLDER
set -euo pipefail
folder=$(realpath -m "$1")
if [ -f "$folder/driver.json" ]; then
    echo "$folder/driver.json"
    exit
fi
. /etc/os-release
mkdir -p "$folder/lists/partial" "$folder/parts"

# The machine's own mirror, asked for another suite.
awk -v RS= -v suite="$VERSION_CODENAME" '$0 ~ "Suites: " suite "[ \n]" { sub(/Suites: [^\n]*/, "Suites: " suite "-backports"); print }' \
    /etc/apt/sources.list.d/*.sources >"$folder/parts/backports.sources"
[ -s "$folder/parts/backports.sources" ] || { echo "this machine names no mirror of $VERSION_CODENAME to ask" >&2; exit 1; }
apart=(-o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$folder/parts" -o Dir::State::lists="$folder/lists")
apt-get "${apart[@]}" update >&2
(cd "$folder" && apt-get "${apart[@]}" download "mesa-vulkan-drivers/$VERSION_CODENAME-backports" >&2)
dpkg-deb --extract "$folder"/mesa-vulkan-drivers_*.deb "$folder/root"

driver=$(find "$folder/root" -name libvulkan_lvp.so | grep .)
printf '{"file_format_version": "1.0.0", "ICD": {"api_version": "1.3.0", "library_path": "%s"}}\n' "$driver" >"$folder/driver.json"
echo "$folder/driver.json"
