// swift-tools-version: 6.2

import CompilerPluginSupport
import Foundation
import PackageDescription

// The layers, from the bottom up: predicates and SQLite; rows; SQL; engines; the framework. An import that goes up does not
// compile (see Docs/Architecture.md).

// The store for PostgreSQL is there where libpq is (`apt-get install libpq-dev`). STRATA_POSTGRESQL=1 or 0 in the environment says so
// beforehand, for instance when libpq was installed after the package manager has read this file.
let hasPostgreSQL =
    Context.environment["STRATA_POSTGRESQL"].map { $0 != "0" }
    ?? ["/usr", "/usr/local", "/opt/homebrew/opt/libpq"].contains { root in
        ["include/postgresql/libpq-fe.h", "include/libpq-fe.h"].contains {
            FileManager.default.fileExists(atPath: "\(root)/\($0)")
        }
    }

let package = Package(
    name: "Strata",
    platforms: [.macOS(.v15)],
    products: [
        .library(name: "CoreData", targets: ["CoreData"]),
        .library(name: "SwiftData", targets: ["SwiftData"]),
        .library(name: "CoreDataJobs", targets: ["CoreDataJobs"]),
        .executable(name: "strata", targets: ["strata"]),
        .plugin(name: "CoreDataModels", targets: ["CoreDataModels"]),
        .plugin(name: "CoreDataClasses", targets: ["CoreDataClasses"]),
        .plugin(name: "CoreDataPort", targets: ["CoreDataPort"]),
    ],
    traits: [
        .trait(
            name: "FaultPoints",
            description: "Named places in the library where tests make errors, kills and waits happen; see FaultPoint."
        ),
        .trait(
            name: "Schedules",
            description: "A scheduler of tests decides at which places threads overtake each other; see Schedule."
        ),
        .trait(
            name: "SmallSizes",
            description: "Portions, windows and caches of one to three, for tests of their boundaries; see WorkSize."
        ),
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
        // The error codes and keys of the public API, which engines throw too, and the digests of version hashes.
        .target(name: "StrataKeys"),
        // The language between contexts and stores: schema, rows, plans, change sets.
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
        // Model files as plain values, for the framework and for plugins: without the framework, so that a plugin's tool is
        // built quickly.
        .target(name: "StrataModelFiles", dependencies: ["StrataKeys"]),
        .target(name: "StrataSwiftSyntax"),
        .target(name: "StrataMacroExpansion", dependencies: ["StrataSwiftSyntax"]),
        .macro(name: "StrataMacros", dependencies: ["StrataMacroExpansion"]),
        // Property lists, keyed archives and DEFLATE, in which models and values are kept.
        .target(name: "StrataArchives", dependencies: ["StrataPredicates"]),
        // Value transformers, and the classes of a program by their names.
        .target(name: "CoreDataTransformers", dependencies: ["StrataArchives", "StrataLocks", "StrataPredicates"]),
        // The ring that Apple's API ties: objects, contexts, coordinators, stores, requests and models.
        .target(
            name: "CoreDataEssentials",
            dependencies: [
                "CoreDataTransformers", "StrataArchives", "StrataKeys", "StrataLocks", "StrataMacros",
                "StrataModelFiles", "StrataPredicates", "StrataRows",
            ]
        ),
        // The stores in SQLite files and in memory, each around its engine. The ring above is compiled beside the engines.
        .target(
            name: "CoreDataEngineStores",
            dependencies: [
                "CoreDataEssentials", "StrataKeys", "StrataLocks", "StrataMemoryStore", "StrataRows",
                "StrataSQLiteStore",
            ]
        ),
        // Models from files, and their copies in stores.
        .target(
            name: "CoreDataModelFiles",
            dependencies: [
                "CoreDataEngineStores", "CoreDataEssentials", "StrataArchives", "StrataKeys", "StrataModelFiles",
                "StrataPredicates",
                "StrataRows",
            ]
        ),
        // Requests that insert, update or delete rows in the stores, without objects.
        .target(
            name: "CoreDataBatches",
            dependencies: ["CoreDataEssentials", "StrataLocks", "StrataPredicates", "StrataRows"]
        ),
        // Objects that are given to one worker for a time.
        .target(
            name: "CoreDataClaims",
            dependencies: ["CoreDataBatches", "CoreDataEssentials", "StrataPredicates", "StrataRows"]
        ),
        // Rows that are locked for a block of a context.
        .target(name: "CoreDataLocking", dependencies: ["CoreDataEssentials", "StrataLocks", "StrataRows"]),
        // The base classes of stores that users write: incremental and atomic ones.
        .target(
            name: "CoreDataCustomStores",
            dependencies: [
                "CoreDataBatches", "CoreDataEssentials", "StrataLocks", "StrataMemoryStore", "StrataPredicates",
                "StrataRows",
            ]
        ),
        // The binary store.
        .target(
            name: "CoreDataBinaryStore",
            dependencies: ["CoreDataCustomStores", "CoreDataEssentials", "StrataArchives", "StrataRows"]
        ),
        // The persistent history, and contexts that follow what other processes write.
        .target(
            name: "CoreDataHistory",
            dependencies: ["CoreDataEssentials", "StrataLocks", "StrataPredicates", "StrataRows"]
        ),
        // The notifications of contexts and coordinators as typed messages, and as sequences.
        .target(name: "CoreDataMessages", dependencies: ["CoreDataEssentials", "StrataLocks"]),
        // How often blocks read the stores: budgets, expectations of tests, and reads that a prefetch would make together.
        .target(
            name: "CoreDataReads",
            dependencies: ["CoreDataEssentials", "StrataLocks", "StrataPredicates"]
        ),
        // Predicates, sort descriptors and expressions of Swift key paths.
        .target(name: "CoreDataKeyPaths", dependencies: ["CoreDataEssentials", "StrataPredicates"]),
        // Rows without objects, in batches.
        .target(name: "CoreDataRows", dependencies: ["CoreDataEssentials", "StrataLocks", "StrataRows"]),
        // Containers and store descriptions.
        .target(
            name: "CoreDataContainer",
            dependencies: [
                "CoreDataEssentials", "CoreDataHistory", "CoreDataModelFiles", "StrataLocks", "StrataRows",
            ]
        ),
        // Controllers of fetched results, and live queries.
        .target(
            name: "CoreDataFetchedResults",
            dependencies: [
                "CoreDataEssentials", "StrataLocks", "StrataPredicates", "StrataRows",
            ]
        ),
        // Migration: inference, mapping models, managers, stages.
        .target(
            name: "CoreDataMigration",
            dependencies: [
                "CoreDataContainer", "CoreDataCustomStores", "CoreDataEngineStores", "CoreDataEssentials",
                "CoreDataModelFiles", "StrataArchives", "StrataKeys", "StrataLocks", "StrataModelFiles",
                "StrataPredicates", "StrataRows",
                "StrataSQLiteStore",
            ]
        ),
        // Models made of Swift classes.
        .target(
            name: "CoreDataModelClasses",
            dependencies: [
                "CoreDataEssentials", "CoreDataMigration", "CoreDataModelFiles", "StrataMacros", "StrataModelFiles",
                "StrataPredicates",
            ]
        ),
        // Health checks, backups, closing, statistics and explanations.
        .target(
            name: "CoreDataOperations",
            dependencies: [
                "CoreDataContainer", "CoreDataEssentials", "CoreDataHistory", "StrataLocks", "StrataRows",
            ]
        ),
        // Stores of many tenants, opened when they are needed.
        .target(
            name: "CoreDataTenants",
            dependencies: ["CoreDataContainer", "CoreDataEssentials", "CoreDataOperations", "StrataLocks"]
        ),
        // The framework as programs import it: it hands on the targets above, and puts them together.
        .target(
            name: "CoreData",
            dependencies: [
                "CoreDataBatches", "CoreDataBinaryStore", "CoreDataClaims", "CoreDataContainer",
                "CoreDataCustomStores", "CoreDataEngineStores", "CoreDataEssentials", "CoreDataFetchedResults",
                "CoreDataHistory", "CoreDataKeyPaths", "CoreDataLocking", "CoreDataMessages", "CoreDataMigration",
                "CoreDataModelClasses",
                "CoreDataModelFiles", "CoreDataOperations", "CoreDataReads", "CoreDataRows", "CoreDataTenants",
                "StrataPredicates",
            ]
        ),

        // Where a thread keeps the variables of a library, of which SwiftData needs one.
        .target(name: "CStrataThreadLocals"),
        // SwiftData's API on the framework. A program that does not import it pays nothing for it.
        .target(
            name: "SwiftData",
            dependencies: ["CStrataThreadLocals", "CoreData", "StrataLocks", "StrataMacros", "StrataPredicates"]
        ),

        // Jobs on claims: queues, workers, schedules.
        .target(name: "CoreDataJobs", dependencies: ["CoreData", "StrataLocks"]),

        // MARK: - Plugins

        // The tool is built for the host, in debug mode, before the client's first target: it has few files below it.
        .target(name: "StrataClassGeneration", dependencies: ["StrataModelFiles", "StrataSwiftSyntax"]),
        .executableTarget(name: "StrataModelTool", dependencies: ["StrataClassGeneration"]),
        .plugin(
            name: "CoreDataModels",
            capability: .buildTool(),
            dependencies: ["StrataModelTool"],
            path: "Sources/Plugins/CoreDataModels"
        ),
        .plugin(
            name: "CoreDataClasses",
            capability: .command(
                intent: .custom(
                    verb: "coredata-classes",
                    description: "Writes the classes of Core Data models into the source tree."
                ),
                permissions: [.writeToPackageDirectory(reason: "The classes of the models are written there.")]
            ),
            dependencies: ["StrataModelTool"],
            path: "Sources/Plugins/CoreDataClasses"
        ),
        .plugin(
            name: "CoreDataPort",
            capability: .command(
                intent: .custom(
                    verb: "coredata-port",
                    description: "Rewrites sources of Apple's platforms so that they compile on Linux."
                ),
                permissions: [.writeToPackageDirectory(reason: "The sources are rewritten in place.")]
            ),
            dependencies: ["StrataModelTool"],
            path: "Sources/Plugins/CoreDataPort"
        ),

        // MARK: - Beside the framework

        // Checks of files against models.
        .target(name: "StrataStoreChecks", dependencies: ["CoreData", "StrataRows", "StrataSQL", "StrataSQLiteStore"]),

        // MARK: - Executables

        // Each a library, which the tests import, and a few lines that run it. The examples are no products:
        // `swift run` finds them in this package, and a client does not see them.
        .target(
            name: "StrataInspector",
            dependencies: [
                "CoreData", "CoreDataJobs", "StrataPackages", "StrataRows", "StrataStoreChecks", "StrataSQLite",
                "StrataSQLiteStore",
                "StrataLocks",
            ]
        ),
        .executableTarget(name: "strata", dependencies: ["CoreData", "StrataInspector"]),
        // New packages, without the framework: `swift run strata-new` is built within seconds.
        .target(name: "StrataPackages"),
        .executableTarget(name: "strata-new", dependencies: ["StrataPackages"]),
        .target(
            name: "DebianIndex",
            dependencies: ["CoreData", "StrataLocks"],
            path: "Sources/Examples/DebianIndex",
            exclude: ["Program"],
            plugins: ["CoreDataModels"]
        ),
        .executableTarget(
            name: "debian-index",
            dependencies: ["DebianIndex"],
            path: "Sources/Examples/DebianIndex/Program"
        ),
        .target(
            name: "JobQueue",
            dependencies: ["CoreData", "CoreDataJobs", "StrataLocks"],
            path: "Sources/Examples/JobQueue",
            exclude: ["Program"]
        ),
        .executableTarget(
            name: "job-queue",
            dependencies: ["JobQueue"],
            path: "Sources/Examples/JobQueue/Program"
        ),
        .target(
            name: "Storefront",
            dependencies: ["CoreData", "CoreDataJobs", "StrataLocks"],
            path: "Sources/Examples/Storefront",
            exclude: ["Program"]
        ),
        .executableTarget(
            name: "storefront-server",
            dependencies: ["Storefront"],
            path: "Sources/Examples/Storefront/Program"
        ),
        // The model of an app that uses SwiftData, and a server that shares it.
        .target(name: "TravelModel", dependencies: ["SwiftData"], path: "Sources/Examples/TravelModel"),
        .target(
            name: "TravelServer",
            dependencies: ["SwiftData", "TravelModel"],
            path: "Sources/Examples/TravelServer",
            exclude: ["Program"]
        ),
        .executableTarget(
            name: "travel-server",
            dependencies: ["SwiftData", "TravelModel", "TravelServer"],
            path: "Sources/Examples/TravelServer/Program"
        ),
        .target(name: "LoadFigures", path: "StressTests/figures"),
        .executableTarget(
            name: "bench",
            dependencies: ["CoreData", "CoreDataJobs", "CStrataSQLite", "JobQueue", "LoadFigures", "SwiftData"],
            path: "StressTests/bench"
        ),
        .executableTarget(
            name: "schedules",
            dependencies: ["CoreData", "CStrataSQLite", "StrataLocks"],
            path: "StressTests/schedules",
            exclude: ["draw-places", "faults", "try-faults"]
        ),
        .executableTarget(
            name: "stress",
            dependencies: [
                "CoreData", "CoreDataJobs", "CStrataSQLite", "StrataLocks", "StrataRows", "StrataSQLiteStore",
                "StrataStoreChecks", "SwiftData", "LoadFigures",
            ],
            path: "StressTests/stress",
            resources: ["predicates", "orders", "uris", "tokens", "models", "stores"].map {
                .embedInCode("Corpus/\($0).txt")
            }
        ),

        // MARK: - Tests

        // The expectations that every suite uses; the target says why they are no macros.
        .target(name: "Expectations", dependencies: ["StrataLocks"], path: "Tests/Expectations"),
        .target(
            name: "TestSupport",
            dependencies: [
                "Expectations", "CoreData", "StrataRows", "StrataSQL", "StrataSQLiteStore", "StrataMemoryStore",
                "StrataSQLite",
                "StrataStoreChecks", "StrataPredicates", "StrataLocks",
            ],
            path: "Tests/TestSupport"
        ),

        // An app in the style of Xcode, with all forms of classes; of its sources only `@objc` and `#keyPath` were changed.
        .target(name: "PortedApp", dependencies: ["CoreData"], path: "Tests/PortedApp", plugins: ["CoreDataModels"]),

        // These run in parallel.
        .testTarget(name: "StrataKeysTests", dependencies: ["StrataKeys"]),
        .testTarget(
            name: "StrataRowsTests",
            dependencies: ["StrataRows", "StrataPredicates", "StrataKeys", "StrataLocks"]
        ),
        .testTarget(name: "StrataPredicatesTests", dependencies: ["StrataPredicates"]),
        .testTarget(
            name: "StrataMemoryStoreTests",
            dependencies: ["StrataMemoryStore", "StrataRows", "StrataPredicates", "StrataKeys"]
        ),
        .testTarget(name: "StrataModelFilesTests", dependencies: ["StrataModelFiles", "StrataKeys"]),
        .testTarget(name: "StrataSwiftSyntaxTests", dependencies: ["StrataSwiftSyntax"]),
        // With CoreData, and not with the macros themselves: that would build all targets a second time, for the host.
        .testTarget(name: "StrataMacrosTests", dependencies: ["StrataMacroExpansion", "CoreData"]),
        .testTarget(
            name: "StrataClassGenerationTests",
            dependencies: ["StrataClassGeneration", "StrataModelFiles", "StrataSwiftSyntax"]
        ),
        .testTarget(name: "PortedAppTests", dependencies: ["PortedApp", "CoreData"], plugins: ["CoreDataModels"]),
        .testTarget(
            name: "StrataSQLTests",
            dependencies: ["StrataSQL", "CoreData", "StrataStoreChecks", "TestSupport"]
        ),
        .testTarget(
            name: "StrataSQLiteStoreTests",
            dependencies: [
                "StrataSQLiteStore", "StrataMemoryStore", "CoreData", "StrataStoreChecks", "StrataLocks", "TestSupport",
            ]
        ),
        .testTarget(
            name: "StrataStoreChecksTests",
            dependencies: ["StrataStoreChecks", "CoreData", "StrataLocks", "TestSupport"]
        ),
        .testTarget(
            name: "StrataInspectorTests",
            dependencies: [
                "StrataInspector", "StrataPackages", "CoreData", "CoreDataJobs", "StrataStoreChecks",
                "StrataSQLiteStore", "TestSupport",
            ]
        ),
        .testTarget(
            name: "ModelClassesTests",
            dependencies: ["CoreData", "StrataInspector", "StrataStoreChecks", "StrataSQLiteStore", "TestSupport"]
        ),
        .testTarget(
            name: "SwiftDataTests",
            dependencies: [
                "CoreData", "StrataInspector", "StrataLocks", "SwiftData", "TestSupport", "TravelModel", "TravelServer",
            ]
        ),
        .testTarget(
            name: "CoreDataTests",
            dependencies: [
                "CoreData", "StrataModelFiles", "StrataRows", "StrataSQLiteStore", "StrataStoreChecks", "StrataLocks",
                "TestSupport",
            ]
        ),
        .testTarget(
            name: "CoreDataOperationsTests",
            dependencies: [
                "CoreData", "CoreDataJobs", "StrataRows", "StrataInspector", "StrataSQLiteStore", "StrataSwiftSyntax",
                "StrataLocks",
                "TestSupport",
            ]
        ),

        .testTarget(name: "FeaturePairsTests", dependencies: ["CoreData", "StrataLocks", "TestSupport"]),
        .testTarget(name: "CoreDataTenantsTests", dependencies: ["CoreData", "StrataLocks", "TestSupport"]),

        // These run one by one, and before the others: they script several processes, or have to end by a clock, and among
        // thousands of tests at once a step would wait for minutes.
        .testTarget(name: "StrataLocksTests", dependencies: ["StrataLocks"]),
        .testTarget(name: "StrataSQLiteTests", dependencies: ["StrataSQLite", "StrataLocks"]),
        .testTarget(
            name: "CoreDataSteppedTests",
            dependencies: ["CoreData", "StrataSQLite", "StrataStoreChecks", "StrataLocks", "TestSupport"]
        ),
        .testTarget(
            name: "CoreDataJobsTests",
            dependencies: [
                "CoreData", "CoreDataJobs", "StrataLocks", "StrataSQLite", "StrataSQLiteStore", "TestSupport",
            ]
        ),
        .testTarget(
            name: "DebianIndexTests",
            dependencies: ["DebianIndex", "StrataInspector", "StrataLocks", "TestSupport"]
        ),
        .testTarget(name: "StorefrontTests", dependencies: ["Storefront", "CoreData", "CoreDataJobs"]),
        .testTarget(name: "JobQueueTests", dependencies: ["JobQueue", "CoreDataJobs", "TestSupport"]),
    ],
    swiftLanguageModes: [.v6]
)

if hasPostgreSQL {
    package.products.append(.library(name: "CoreDataPostgreSQL", targets: ["CoreDataPostgreSQL"]))
    package.products.append(.library(name: "SwiftDataPostgreSQL", targets: ["SwiftDataPostgreSQL"]))
    package.targets += [
        .systemLibrary(
            name: "CStrataPostgreSQL",
            pkgConfig: "libpq",
            providers: [.apt(["libpq-dev"]), .brew(["libpq"])]
        ),
        .target(name: "StrataPostgreSQL", dependencies: ["CStrataPostgreSQL", "StrataLocks"]),
        .target(
            name: "StrataPostgreSQLStore",
            dependencies: [
                "StrataRows", "StrataSQL", "StrataPostgreSQL", "StrataPredicates", "StrataKeys", "StrataLocks",
            ]
        ),
        .target(
            name: "CoreDataPostgreSQL",
            dependencies: ["CoreData", "StrataPostgreSQLStore", "StrataRows", "StrataKeys", "StrataLocks"]
        ),
        .target(name: "SwiftDataPostgreSQL", dependencies: ["CoreDataPostgreSQL", "SwiftData"]),
        .testTarget(
            name: "StrataPostgreSQLTests",
            dependencies: ["StrataPostgreSQL", "CStrataPostgreSQL", "StrataLocks"]
        ),
        .testTarget(
            name: "StrataPostgreSQLStoreTests",
            dependencies: [
                "CoreDataPostgreSQL", "StrataPostgreSQL", "StrataPostgreSQLStore", "CoreData", "StrataRows",
                "StrataSQL", "StrataLocks",
                "StrataInspector", "CoreDataJobs", "TestSupport",
            ]
        ),
    ]
    for target in package.targets where target.name == "TestSupport" {
        target.dependencies += ["CoreDataPostgreSQL", "StrataPostgreSQL", "StrataPostgreSQLStore"]
    }
    for target in package.targets where target.name == "SwiftDataTests" {
        target.dependencies += ["SwiftDataPostgreSQL"]
    }
    for target in package.targets where target.name == "StrataInspector" || target.name == "StrataInspectorTests" {
        target.dependencies += ["CoreDataPostgreSQL"]
    }
    for target in package.targets where target.name == "JobQueue" || target.name == "Storefront" {
        target.dependencies += ["CoreDataPostgreSQL"]
    }
    for target in package.targets where target.name == "stress" {
        target.dependencies += ["CoreDataPostgreSQL", "StrataPostgreSQL", "SwiftDataPostgreSQL"]
    }
    for target in package.targets where target.name == "bench" {
        target.dependencies += ["CoreDataPostgreSQL", "CStrataPostgreSQL"]
    }
}

for target in package.targets where target.type == .test { target.dependencies.append("Expectations") }

// STRATA_TESTS=StrataSQLTests,StrataRowsTests leaves out all other test targets. SwiftPM links the tests of a package into one
// program. So a developer who changes one engine need not wait for the tests of the others to compile (see `make test-of`).
if let named = Context.environment["STRATA_TESTS"] {
    let kept = Set(named.split(separator: ",").map(String.init))
    package.targets.removeAll { $0.type == .test && !kept.contains($0.name) }
}
