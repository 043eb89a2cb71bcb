import CoreData

/// Shows the migration of an old store: another process opens it, is killed half-way, and is started again.
struct MigrationDemo {
    private let store: URL
    private let packages: Int

    init(_ options: Options) {
        store = URL(fileURLWithPath: options.store)
        packages = options.packages
    }

    func run() throws {
        try makeOldStore()
        let before = try digits(of: store)
        print("\(store.path) has \(packages.grouped) packages, in version 1 of the model (\(before))")
        print("\nA process opens it with version 3, and is killed half-way:")
        try startMigrating(killedAt: 0.5)
        let between = try digits(of: store)
        print(
            "The store is whole, and of version 2 (\(between)): the first stage stays, nothing of the second is there."
        )
        print("\nAnother one opens it again:")
        try startMigrating(killedAt: nil)
        try show()
    }

    /// The work of the process that is started and killed: it opens the store, and prints the progress.
    static func migrate(_ store: URL) throws {
        // The output is written at once, because the process that reads it may end this one.
        let container = try PackageStore.open(at: store) {
            FileHandle.standardOutput.write(Data("progress \($0)\n".utf8))
        }
        let coordinator = container.persistentStoreCoordinator
        for store in coordinator.persistentStores { try coordinator.remove(store) }
    }

    // MARK: - The old store

    /// Makes a store as the first version of this program has made it.
    private func makeOldStore() throws {
        let model = try IndexStages.versions()[0].resolve()
        for entity in model.entities { entity.managedObjectClassName = "NSManagedObject" }
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        try coordinator.destroyPersistentStore(
            at: store,
            type: .sqlite,
            options: [NSPersistentStoreForceDestroyOption: true]
        )
        let added = try coordinator.addPersistentStore(type: .sqlite, at: store)
        let context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        try context.performAndWait {
            let maintainers = (0..<100).map { number in
                let maintainer = NSEntityDescription.insertNewObject(forEntityName: "Maintainer", into: context)
                maintainer.setValue("Maintainer \(number)", forKey: "name")
                maintainer.setValue("team-\(number)@lists.example.org", forKey: "email")
                return maintainer
            }
            for number in 0..<packages {
                let package = NSEntityDescription.insertNewObject(forEntityName: "Package", into: context)
                package.setValue("package-\(number)", forKey: "name")
                package.setValue("1:2.\(number % 10)-\(number % 7)", forKey: "version")
                package.setValue("all", forKey: "architecture")
                package.setValue("The package of number \(number)", forKey: "summary")
                package.setValue(Date(), forKey: "indexedAt")
                package.setValue(Date(), forKey: "importedAt")
                package.setValue(maintainers[number % 100], forKey: "maintainer")
                if number % 5000 == 4999 { try context.save() }
            }
            try context.save()
        }
        try coordinator.remove(added)
    }

    /// The first digits of the hash of the entity `Package`, which distinguish the versions of a store.
    private func digits(of store: URL) throws -> String {
        let metadata = try NSPersistentStoreCoordinator.metadataForPersistentStore(type: .sqlite, at: store)
        let hashes = metadata[NSStoreModelVersionHashesKey] as? [String: Data] ?? [:]
        return (hashes["Package"] ?? Data()).prefix(4).map { String(format: "%02x", $0) }.joined()
    }

    // MARK: - The other process

    private func startMigrating(killedAt limit: Double?) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = ["--migrate", "--store", store.path]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let bar = ProgressBar("Migrating", total: packages)
        var done = 0
        var rest = Data()
        while true {
            let data = output.fileHandleForReading.availableData
            guard !data.isEmpty else { break }
            rest += data
            while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                let line = String(decoding: rest[rest.startIndex..<end], as: UTF8.self)
                rest = rest[rest.index(after: end)...]
                guard let fraction = line.split(separator: " ").last.flatMap({ Double($0) }) else { continue }
                let reached = Int(fraction * Double(packages))
                bar.advance(by: reached - done)
                done = reached
                if let limit, fraction >= limit { kill(process.processIdentifier, SIGKILL) }
            }
        }
        process.waitUntilExit()
        bar.finish()
        let isKilled = process.terminationReason == .uncaughtSignal
        guard isKilled == (limit != nil), isKilled || process.terminationStatus == 0 else {
            throw CocoaError(
                .migration,
                userInfo: [NSLocalizedDescriptionKey: "The process ended with \(process.terminationStatus)."]
            )
        }
        if isKilled { print("It was killed after \(done.grouped) packages.") }
    }

    private func show() throws {
        let container = try PackageStore.open(at: store)
        let context = container.newBackgroundContext()
        try context.performAndWait {
            let request = NSFetchRequest<Package>(entityName: "Package")
            request.predicate = NSPredicate(format: "upstreamVersion == '2.3' AND revision == '4'")
            let found = try context.count(for: request)
            request.fetchLimit = 1
            request.sortDescriptors = [NSSortDescriptor(key: "name", ascending: true)]
            print("\n\(found.grouped) packages have upstream version 2.3 and revision 4; one of them:")
            for package in try context.fetch(request) {
                print("  \(package.name) \(package.version) = \(package.upstreamVersion), \(package.revision ?? "-")")
                print(
                    "  \(package.synopsis), by \(package.maintainer?.name ?? "") of \(package.maintainer?.domain ?? "-")"
                )
            }
            let all = try context.count(for: NSFetchRequest<Package>(entityName: "Package"))
            guard all == packages else {
                throw CocoaError(
                    .migration,
                    userInfo: [NSLocalizedDescriptionKey: "\(all) packages are there, not \(packages)."]
                )
            }
        }
    }
}
