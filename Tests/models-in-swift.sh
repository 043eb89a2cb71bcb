#!/usr/bin/env bash
# Compiles the Swift that `strata model --as swift` writes, and compares its models with those that it was written of: the version hashes of
# all entities, and the statements that make a store. The XML that `--as xml` writes is compared as well.
#
#   Tests/models-in-swift.sh [MODEL …]
#
# Without arguments: the models of the repository, and those in the folder around STRATA_FIXTURES, if there is one, that are not in
# Tests/Fixtures as well. It needs a debug build of the product `strata`, whose modules it compiles against.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${STRATA_BUILD:-$root/.build/debug}
fixtures=$(dirname "${STRATA_FIXTURES:-$root/../shared/fixtures/apple-stores}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

models=("$@")
if [ $# -eq 0 ]; then
    files=(\( -name '*.contents.xml' -o -name contents -o -name '*.mom' \) -type f -print0)
    while IFS= read -r -d '' file; do
        case "$file" in "$fixtures"/*) [ ! -e "$root/Tests/Fixtures/${file#"$fixtures"/}" ] || continue;; esac
        models+=("$file")
    done < <(
        { find "$root/Sources" "$root/Tests" "$root/StressTests" -path "$root/Tests/Fixtures" -prune -o \
              -path '*.xcdatamodel/contents' -print0
          find "$root/Tests/Fixtures" "${files[@]}"
          if [ -d "$fixtures" ]; then find "$fixtures" "${files[@]}"; fi; } | sort -z)
fi

# A namespace for each, as versions of one model have the same names.
{
    echo 'import CoreData'
    echo 'import CStrataSQLite'
    for number in "${!models[@]}"; do
        "$build/strata" model "${models[number]}" --as swift > "$scratch/model.swift"
        "$build/strata" model "${models[number]}" --as xml > "$scratch/$number.xml"
        name=$(sed -n 's/^enum \([^:]*\): ManagedModelVersion {$/\1/p' "$scratch/model.swift")
        made="try NSManagedObjectModel(version: Model$number.$name.self)"
        if grep -q '^    static func model() throws' "$scratch/model.swift"; then made="try Model$number.$name.model()"; fi
        echo "enum Model$number {"
        grep -v '^import ' "$scratch/model.swift"
        echo '}'
        # The numbers of the paths keep odd letters out of the source.
        echo "comparisons.append(Comparison($number) { $made })" >> "$scratch/list"
    done
    cat << 'END'

struct Comparison {
    let number: Int
    let make: () throws -> NSManagedObjectModel

    init(_ number: Int, _ make: @escaping () throws -> NSManagedObjectModel) { (self.number, self.make) = (number, make) }
}

struct Failure: Error { let text: String }

/// The statements of a store of the model, whose classes do not matter.
func statements(_ model: NSManagedObjectModel, in folder: URL) throws -> [String] {
    guard let copy = NSManagedObjectModel(byMerging: [model]) else { throw Failure(text: "cannot be copied") }
    for entity in copy.entities { entity.managedObjectClassName = "NSManagedObject" }
    let url = folder.appendingPathComponent(UUID().uuidString)
    let coordinator = NSPersistentStoreCoordinator(managedObjectModel: copy)
    let store = try coordinator.addPersistentStore(ofType: NSSQLiteStoreType, configurationName: nil, at: url, options: nil)
    try coordinator.remove(store)
    var database: OpaquePointer?
    defer { sqlite3_close(database) }
    var statement: OpaquePointer?
    defer { sqlite3_finalize(statement) }
    guard sqlite3_open(url.path, &database) == SQLITE_OK,
        sqlite3_prepare_v2(database, "SELECT name, coalesce(sql, '') FROM sqlite_master ORDER BY 1", -1, &statement, nil) == SQLITE_OK
    else { throw Failure(text: "the store cannot be read") }
    var lines: [String] = []
    while sqlite3_step(statement) == SQLITE_ROW {
        lines.append((0..<2).map { String(cString: sqlite3_column_text(statement, $0)) }.joined(separator: ": "))
    }
    return lines
}

func compare(_ comparison: Comparison, _ path: String, in folder: URL) throws {
    let original = try NSManagedObjectModel(reading: URL(fileURLWithPath: path))
    let schema = try statements(original, in: folder)
    let again = try NSManagedObjectModel(reading: folder.appendingPathComponent("\(comparison.number).xml"))
    for (form, model) in [("Swift", try comparison.make()), ("XML", again)] {
        for (name, hash) in original.entityVersionHashesByName where model.entityVersionHashesByName[name] != hash {
            throw Failure(text: "the hash of \(name) differs in \(form)")
        }
        guard model.entityVersionHashesByName.count == original.entityVersionHashesByName.count else {
            throw Failure(text: "the entities differ in \(form)")
        }
        let other = try statements(model, in: folder)
        guard other == schema else {
            let differing = Set(other).symmetricDifference(schema).sorted()
            throw Failure(text: "the schema differs in \(form): \(differing)")
        }
    }
}

var comparisons: [Comparison] = []
END
    cat "$scratch/list"
    cat << 'END'
let folder = URL(fileURLWithPath: CommandLine.arguments[1])
var failures = 0
for comparison in comparisons {
    let path = CommandLine.arguments[2 + comparison.number]
    do {
        try compare(comparison, path, in: folder)
    } catch {
        print("\(path): \((error as? Failure)?.text ?? error.localizedDescription)")
        failures += 1
    }
}
print("\(comparisons.count) models in Swift and in XML compared with their files, \(failures) differ.")
exit(failures == 0 ? 0 : 1)
END
} > "$scratch/main.swift"

objects=()
for target in CoreData CoreDataBatches CoreDataBinaryStore CoreDataClaims CoreDataContainer CoreDataCustomStores CoreDataEngineStores CoreDataEssentials \
    CoreDataFetchedResults CoreDataHistory CoreDataLocking CoreDataMessages CoreDataMigration CoreDataModelClasses CoreDataModelFiles CoreDataOperations CoreDataReads CoreDataRows \
    CoreDataKeyPaths CoreDataTenants CoreDataTransformers StrataArchives StrataKeys StrataLocks StrataMemoryStore StrataModelFiles \
    StrataPredicates StrataRows StrataSQL StrataSQLite StrataSQLiteStore; do
    objects+=("$build/$target.build"/*.o)
done
swiftc -swift-version 5 -suppress-warnings -Onone -I "$build/Modules" -Xcc "-fmodule-map-file=$root/Sources/CStrataSQLite/module.modulemap" \
    -Xfrontend -load-plugin-executable -Xfrontend "$build/StrataMacros-tool#StrataMacros" \
    "$scratch/main.swift" "${objects[@]}" -lsqlite3 -o "$scratch/compare"
"$scratch/compare" "$scratch" "${models[@]}"
