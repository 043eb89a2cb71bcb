// swift-tools-version: 6.2

import CompilerPluginSupport
import PackageDescription

// The layers, from the bottom up: SQLite, predicates, the framework. The compiler holds the order between targets;
// the folders inside `CoreData` hold it between the framework's own layers (see Docs/Architecture.md).

let package = Package(
    name: "Strata",
    platforms: [.macOS(.v15)],
    products: [
        .library(name: "CoreData", targets: ["CoreData"]),
        .executable(name: "strata", targets: ["strata"]),
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
        .macro(name: "StrataMacros"),
        .target(
            name: "CoreData",
            dependencies: ["StrataLocks", "StrataSQLite", "StrataPredicates", "StrataMacros"]
        ),

        // MARK: - Executables

        .executableTarget(name: "strata", dependencies: ["CoreData"]),
        .executableTarget(
            name: "DebianIndex",
            dependencies: ["CoreData"],
            path: "Sources/Examples/DebianIndex",
            resources: [.copy("DebianIndex.xcdatamodeld")]
        ),
        .executableTarget(
            name: "bench",
            dependencies: ["CoreData", "CStrataSQLite"],
            path: "StressTests/bench"
        ),

        // MARK: - Tests

        .target(name: "TestSupport", dependencies: ["CoreData"], path: "Tests/TestSupport"),
        .testTarget(name: "StrataSQLiteTests", dependencies: ["StrataSQLite", "StrataLocks"]),
        .testTarget(name: "StrataPredicatesTests", dependencies: ["StrataPredicates", "StrataLocks"]),
        .testTarget(name: "StrataMacrosTests", dependencies: ["StrataMacros"]),
        .testTarget(
            name: "CoreDataTests",
            dependencies: ["CoreData", "StrataSQLite", "StrataLocks", "TestSupport", "strata", "DebianIndex"]
        ),
    ],
    swiftLanguageModes: [.v6]
)
