// swift-tools-version: 6.2

import CompilerPluginSupport
import PackageDescription

// The layers, from the bottom up: predicates and SQLite; rows; SQL; engines; the framework. An import that goes up does not
// compile (see Docs/Architecture.md).

let package = Package(
    name: "Strata",
    platforms: [.macOS(.v15)],
    products: [
        .library(name: "CoreData", targets: ["CoreData"]),
        .executable(name: "strata", targets: ["strata"]),
        .executable(name: "DebianIndex", targets: ["DebianIndexProgram"]),
        .executable(name: "JobQueue", targets: ["JobQueueProgram"]),
    ],
    traits: [
        .trait(
            name: "FaultPoints",
            description: "Named places in the library where tests make errors, kills and waits happen; see FaultPoint."
        )
    ],
    targets: [
        // MARK: - Library

        .systemLibrary(
            name: "CStrataSQLite",
            pkgConfig: "sqlite3",
            providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite3"])]
        ),
        .target(name: "StrataLocks"),
        .target(name: "StrataSQLite", dependencies: ["CStrataSQLite", "StrataLocks"]),
        .target(name: "StrataPredicates", dependencies: ["StrataLocks"]),
        // The error codes and keys of the public API, which engines throw too.
        .target(name: "StrataKeys"),
        // What contexts and stores speak: schema, rows, plans, change sets.
        .target(name: "StrataRows", dependencies: ["StrataLocks", "StrataPredicates", "StrataKeys"]),
        .target(name: "StrataSQL", dependencies: ["StrataRows", "StrataPredicates", "StrataKeys"]),
        .target(
            name: "StrataSQLiteStore",
            dependencies: [
                "StrataRows", "StrataSQL", "StrataSQLite", "StrataPredicates", "StrataKeys", "StrataLocks",
            ]
        ),
        .target(
            name: "StrataMemoryStore",
            dependencies: ["StrataRows", "StrataPredicates", "StrataKeys", "StrataLocks"]
        ),
        .target(name: "StrataMacroExpansion"),
        .macro(name: "StrataMacros", dependencies: ["StrataMacroExpansion"]),
        .target(
            name: "CoreData",
            dependencies: [
                "StrataLocks", "StrataPredicates", "StrataKeys", "StrataRows", "StrataSQLiteStore", "StrataMemoryStore",
                "StrataMacros",
            ]
        ),

        // Checks of files against models, beside the framework.
        .target(name: "StrataStoreChecks", dependencies: ["CoreData", "StrataRows", "StrataSQL", "StrataSQLiteStore"]),

        // MARK: - Executables

        // Each a library, which the tests import, and a few lines that run it.
        .target(
            name: "StrataInspector",
            dependencies: ["CoreData", "StrataStoreChecks", "StrataSQLiteStore"]
        ),
        .executableTarget(name: "strata", dependencies: ["CoreData", "StrataInspector"]),
        .target(
            name: "DebianIndex",
            dependencies: ["CoreData", "StrataLocks"],
            path: "Sources/Examples/DebianIndex",
            exclude: ["Program"],
            resources: [.copy("DebianIndex.xcdatamodeld")]
        ),
        .executableTarget(
            name: "DebianIndexProgram",
            dependencies: ["DebianIndex"],
            path: "Sources/Examples/DebianIndex/Program"
        ),
        .target(
            name: "JobQueue",
            dependencies: ["CoreData", "StrataLocks"],
            path: "Sources/Examples/JobQueue",
            exclude: ["Program"]
        ),
        .executableTarget(
            name: "JobQueueProgram",
            dependencies: ["JobQueue"],
            path: "Sources/Examples/JobQueue/Program"
        ),
        .target(name: "LoadFigures", path: "StressTests/figures"),
        .executableTarget(
            name: "bench",
            dependencies: ["CoreData", "CStrataSQLite", "JobQueue", "LoadFigures"],
            path: "StressTests/bench"
        ),
        .executableTarget(
            name: "stress",
            dependencies: [
                "CoreData", "CStrataSQLite", "StrataLocks", "StrataRows", "StrataSQLiteStore", "StrataStoreChecks",
                "LoadFigures",
            ],
            path: "StressTests/stress",
            resources: ["predicates", "orders", "uris", "tokens", "models", "stores"].map {
                .embedInCode("Corpus/\($0).txt")
            }
        ),

        // MARK: - Tests

        .target(
            name: "TestSupport",
            dependencies: [
                "CoreData", "StrataRows", "StrataSQL", "StrataSQLiteStore", "StrataMemoryStore", "StrataSQLite",
                "StrataStoreChecks", "StrataPredicates", "StrataLocks",
            ],
            path: "Tests/TestSupport"
        ),

        // These run in parallel.
        .testTarget(name: "StrataRowsTests", dependencies: ["StrataRows", "StrataPredicates"]),
        .testTarget(name: "StrataPredicatesTests", dependencies: ["StrataPredicates", "StrataLocks"]),
        // With CoreData, and not with the macros themselves: that would build all targets a second time, for the host.
        .testTarget(name: "StrataMacrosTests", dependencies: ["StrataMacroExpansion", "CoreData"]),
        .testTarget(
            name: "StrataSQLTests",
            dependencies: ["StrataSQL", "CoreData", "StrataStoreChecks", "TestSupport"]
        ),
        .testTarget(
            name: "StrataSQLiteStoreTests",
            dependencies: ["StrataSQLiteStore", "StrataMemoryStore", "CoreData", "StrataStoreChecks", "TestSupport"]
        ),
        .testTarget(name: "StrataStoreChecksTests", dependencies: ["StrataStoreChecks", "CoreData", "TestSupport"]),
        .testTarget(
            name: "StrataInspectorTests",
            dependencies: ["StrataInspector", "CoreData", "StrataStoreChecks", "StrataSQLiteStore", "TestSupport"]
        ),
        .testTarget(
            name: "ModelClassesTests",
            dependencies: ["CoreData", "StrataInspector", "StrataStoreChecks", "StrataSQLiteStore", "TestSupport"]
        ),
        .testTarget(
            name: "CoreDataTests",
            dependencies: ["CoreData", "StrataRows", "StrataSQLiteStore", "StrataStoreChecks", "TestSupport"]
        ),

        // These run one by one, and before the others: they script several processes, or have to end by a clock, and among
        // thousands of tests at once a step would wait for minutes.
        .testTarget(name: "StrataSQLiteTests", dependencies: ["StrataSQLite", "StrataLocks"]),
        .testTarget(name: "CoreDataSteppedTests", dependencies: ["CoreData", "StrataStoreChecks", "TestSupport"]),
        .testTarget(name: "DebianIndexTests", dependencies: ["DebianIndex", "StrataInspector", "TestSupport"]),
        .testTarget(name: "JobQueueTests", dependencies: ["JobQueue", "TestSupport"]),
    ],
    swiftLanguageModes: [.v6]
)

// STRATA_TESTS=StrataSQLTests,StrataRowsTests leaves out all other test targets: SwiftPM links the tests of a package into one
// program, and whoever changes one engine need not wait for the tests of the others to compile (see `make test-of`).
if let named = Context.environment["STRATA_TESTS"] {
    let kept = Set(named.split(separator: ",").map(String.init))
    package.targets.removeAll { $0.type == .test && !kept.contains($0.name) }
}
