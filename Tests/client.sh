#!/usr/bin/env bash
# Builds packages that depend on this one, as programs do, and checks what they print.
#
#   Tests/client.sh FOLDER
#
# The packages are made in FOLDER, and built there. One has a library with a model and classes of every access, as a static product. The other has a
# program with a model of its own that uses it, and both once more with other options of the compiler: file by file, and for tests. All are made in one
# release build, as the framework takes most of its time.
#
# It prints the processor time of that build and the size of the program without its symbols, and fails beyond a limit. The limits are far above what
# was measured (Docs/Results.md), as machines differ: they are for a change that makes either several times as much. CLIENT_SECONDS and CLIENT_BYTES
# set others.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mkdir -p "$1"
work=$(cd "$1" && pwd)
swift=${SWIFT:-swift}

rm -rf "$work/Recipes" "$work/Cook"
mkdir -p "$work/Recipes/Sources" "$work/Cook/Sources"
cp -R "$root/Tests/Client/Recipes" "$work/Recipes/Sources/Recipes"
cp -R "$root/Tests/Client/Cook" "$work/Cook/Sources/CookWhole"
for variant in Parts Tested; do
    cp -R "$root/Tests/Client/Recipes" "$work/Cook/Sources/Recipes$variant"
    cp -R "$root/Tests/Client/Cook" "$work/Cook/Sources/Cook$variant"
    sed -i "s/^import Recipes\$/import Recipes$variant/" "$work/Cook/Sources/Cook$variant/Cook.swift"
done

cat > "$work/Recipes/Package.swift" << END
// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "Recipes",
    products: [.library(name: "Recipes", type: .static, targets: ["Recipes"])],
    dependencies: [.package(name: "Strata", path: "$root")],
    targets: [
        .target(
            name: "Recipes",
            dependencies: [.product(name: "CoreData", package: "Strata")],
            plugins: [.plugin(name: "CoreDataModels", package: "Strata")]
        )
    ]
)
END
cat > "$work/Cook/Package.swift" << END
// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "Cook",
    dependencies: [.package(name: "Strata", path: "$root"), .package(name: "Recipes", path: "../Recipes")],
    targets: [
        .executableTarget(
            name: "CookWhole",
            dependencies: [
                .product(name: "Recipes", package: "Recipes"), .product(name: "CoreData", package: "Strata"),
            ],
            plugins: [.plugin(name: "CoreDataModels", package: "Strata")]
        )
    ]
)

for (variant, option) in [("Parts", "-no-whole-module-optimization"), ("Tested", "-enable-testing")] {
    package.targets += [
        .target(
            name: "Recipes\\(variant)",
            dependencies: [.product(name: "CoreData", package: "Strata")],
            swiftSettings: [.unsafeFlags([option])],
            plugins: [.plugin(name: "CoreDataModels", package: "Strata")]
        ),
        .executableTarget(
            name: "Cook\\(variant)",
            dependencies: [.target(name: "Recipes\\(variant)"), .product(name: "CoreData", package: "Strata")],
            swiftSettings: [.unsafeFlags([option])],
            plugins: [.plugin(name: "CoreDataModels", package: "Strata")]
        ),
    ]
}
END

build=("$swift" build -c release --package-path "$work/Cook" --scratch-path "$work/build")
TIMEFORMAT='%0U %0S'
{ time "${build[@]}" 2>&1 | tee "$work/build.log" >&3; } 3>&1 2> "$work/time"
read -r user system < "$work/time"
seconds=$((user + system))
# What the compiler says of the library's own sources is noise in every program's first build.
if grep -F "$root/Sources/" "$work/build.log" | grep -F "warning:"; then
    echo "The sources of the library have warnings." >&2
    exit 1
fi
programs=$("${build[@]}" --show-bin-path)
expected="Soup 4 4.5 true: cut, boil; salt true
wok 28 1
own: 7 0 1"
for program in CookWhole CookParts CookTested; do
    printed=$("$programs/$program")
    if [ "$printed" != "$expected" ]; then
        printf '%s has printed\n%s\nand not\n%s\n' "$program" "$printed" "$expected" >&2
        exit 1
    fi
    # Without the trait `FaultPoints` the library has places for tests in its source only.
    if grep -qE 'save\.written|no-version-check|10FaultPointV7handler' "$programs/$program"; then
        echo "$program has fault points." >&2
        exit 1
    fi
done
strip -o "$work/stripped" "$programs/CookWhole"
bytes=$(stat -c %s "$work/stripped")
echo "The build took $seconds s of the processors. The program has $(((bytes + 500000) / 1000000)) MB without its symbols."
within() {
    if [ "$2" -gt "$3" ]; then
        echo "$1 is $2, and more than $3." >&2
        exit 1
    fi
}
within "The processor time of the build, in seconds," "$seconds" "${CLIENT_SECONDS:-2000}"
within "The size of the program, in bytes," "$bytes" "${CLIENT_BYTES:-20000000}"
echo "A program and its library work in a release build: as whole modules, file by file, and built for tests."
