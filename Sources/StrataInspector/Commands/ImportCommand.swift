import CoreData
import StrataLocks

/// Makes a store from the lines that `export` has printed.
enum ImportCommand: Command {
    static let name = "import"
    static let summary =
        "Makes a new store of the lines that export has printed. Objects get new keys; a store that cannot be finished is removed."
    static let options: [Option] = [
        Option(
            "--store",
            "FILE",
            required: true,
            help: "the store, a SQLite file or a URL, which must not be there yet"
        ),
        Option("--model", "PATH", help: "an .xcdatamodeld, an .xcdatamodel or its contents file"),
        Option("--like", "FILE", help: "instead of --model: a store that keeps a copy of its model"),
        Option("--from", "FILE", required: true, help: "the lines"),
        Option("--history", help: "keep a history, for a program that opens the store with one"),
    ]

    static func run(_ arguments: Arguments, print: (String) -> Void) throws -> ExitCode {
        let lines = try arguments.required("--from")
        let place = try StorePlace(new: try arguments.required("--store"))
        var options: [AnyHashable: Any] = [:]
        if arguments.has("--history") { options[NSPersistentHistoryTrackingKey] = true }
        // The store is made with the unchanged model, from which its version comes.
        let maker = NSPersistentStoreCoordinator(managedObjectModel: try model(arguments))
        try maker.addPersistentStore(type: place.type, at: place.url, options: options)
        try maker.close()
        let model = try model(arguments)
        model.readTransformablesAsData()
        options[NSIgnorePersistentStoreVersioningOption] = true
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: model)
        coordinator.limits.rowCacheBytes = ExchangeFormat.rowCacheBytes
        do {
            try coordinator.addPersistentStore(type: place.type, at: place.url, options: options)
            let count = try Import(coordinator, lines).run()
            try coordinator.close()
            print("\(place.name) has \(count) objects.")
        } catch {
            try? coordinator.close()
            do { try place.destroy(model) } catch let left {
                print("What was made of \(place.name) could not be removed: \(left.localizedDescription)")
            }
            throw error
        }
        return .success
    }

    private static func model(_ arguments: Arguments) throws -> NSManagedObjectModel {
        if let path = arguments["--model"] { return try Store.model(at: path) }
        guard let store = arguments["--like"] else { throw UsageError("one of --model and --like is missing") }
        return try Store.model(arguments, try StorePlace(store))
    }
}

/// Reads the lines twice: first the objects are made, with their attributes, and then they are related.
///
/// A portion of objects is in memory at a time. The new keys are on disk.
private struct Import {
    private let context: NSManagedObjectContext
    private let model: NSManagedObjectModel
    private let path: String
    private let keys: ImportedKeys
    private var roots: [String: String] = [:]

    init(_ coordinator: NSPersistentStoreCoordinator, _ path: String) throws {
        context = NSManagedObjectContext(.privateQueue)
        context.persistentStoreCoordinator = coordinator
        context.savesWithoutValidation()
        model = coordinator.managedObjectModel
        self.path = path
        keys = try ImportedKeys()
        for entity in model.entities {
            var root = entity
            while let parent = root.superentity { root = parent }
            roots[entity.name ?? ""] = root.name ?? ""
        }
    }

    func run() throws -> Int {
        let count = try inPortions { lines, number in try make(lines, from: number) }
        _ = try inPortions { lines, number in try relate(lines, from: number) }
        return count
    }

    /// Reads all lines, and returns the number of their objects.
    private func inPortions(_ body: ([ExchangeFormat.Line], Int) throws -> Void) throws -> Int {
        let file = try LineFile(path)
        var lines: [ExchangeFormat.Line] = []
        var (number, start, count) = (0, 1, 0)
        while let line = try file.next() {
            number += 1
            guard !line.isEmpty else { continue }
            if lines.isEmpty { start = number }
            lines.append(try ExchangeFormat.Line(line, number: number))
            count += 1
            guard lines.count == WorkSize.importedLines else { continue }
            try body(lines, start)
            lines.removeAll(keepingCapacity: true)
        }
        if !lines.isEmpty { try body(lines, start) }
        return count
    }

    private func make(_ lines: [ExchangeFormat.Line], from start: Int) throws {
        let made = try context.performAndWait {
            var made: [NSManagedObject] = []
            for (offset, line) in lines.enumerated() {
                let number = start + offset
                guard let entity = model.entitiesByName[line.entity], !entity.isAbstract else {
                    throw ExchangeFormat.failure(
                        "line \(number): the model has no entity \(line.entity) of objects",
                        number
                    )
                }
                try requireKnown(line.members.keys, in: entity, line: number)
                let object = NSManagedObject(entity: entity, insertInto: context)
                for (name, attribute) in entity.attributesByName where !attribute.isTransient {
                    if attribute is NSDerivedAttributeDescription { continue }
                    // An attribute that is missing in the line has no value, even if it has a default.
                    let value = try line.members[name].map {
                        try ExchangeFormat.value($0, attribute, line: number)
                    }
                    object.setValue(value, forKey: name)
                }
                made.append(object)
            }
            try context.save()
            let ids = made.map { Int64($0.objectID.uriRepresentation().lastPathComponent.dropFirst()) ?? 0 }
            context.reset()
            return ids
        }
        for (line, key) in zip(lines, made) {
            let root = roots[line.entity] ?? ""
            guard try keys.add(line.key, key, of: root) else {
                throw ExchangeFormat.failure(
                    "two lines are \(root)/p\(line.key), or of entities that inherit from it",
                    0
                )
            }
        }
    }

    /// Refuses a line with a value that is not of a property, or of one whose value is not written.
    private func requireKnown(_ names: some Sequence<String>, in entity: NSEntityDescription, line number: Int) throws {
        let properties = entity.propertiesByName
        let refused = names.filter { name in
            !ExchangeFormat.heads.contains(name) && !(properties[name].map(isWritten) ?? false)
        }
        guard let name = refused.min() else { return }
        guard properties[name] == nil else {
            throw ExchangeFormat.failure("line \(number): no value can be stored for \(name)", number)
        }
        throw ExchangeFormat.failure("line \(number): \(entity.name ?? "") has no property \(name)", number)
    }

    /// Whether values of a property are written.
    ///
    /// The store computes those of derived attributes, and keeps none of transient and fetched properties.
    private func isWritten(_ property: NSPropertyDescription) -> Bool {
        !property.isTransient && !(property is NSDerivedAttributeDescription)
            && !(property is NSFetchedPropertyDescription)
    }

    /// The texts of the IDs that a relationship has in a line.
    ///
    /// - Throws: An error that names the relationship if the value is of another kind.
    private func ids(_ value: Any, of relationship: NSRelationshipDescription, line: Int) throws -> [String] {
        guard let ids = value as? [String] ?? (value as? String).map({ [$0] }) else {
            throw ExchangeFormat.failure("line \(line): \(relationship.name) has no IDs such as \"Venue/p12\"", line)
        }
        guard relationship.isToMany || ids.count < 2 else {
            throw ExchangeFormat.failure("line \(line): \(relationship.name) leads to one object only", line)
        }
        return ids
    }

    private func relate(_ lines: [ExchangeFormat.Line], from start: Int) throws {
        try context.performAndWait {
            for (offset, line) in lines.enumerated() {
                guard let entity = model.entitiesByName[line.entity] else { continue }
                var object: NSManagedObject?
                for (name, relationship) in entity.relationshipsByName {
                    guard let value = line.members[name] else { continue }
                    let others = try ids(value, of: relationship, line: start + offset).map { id in
                        try self.object(id, of: relationship, line: start + offset)
                    }
                    let owner = try object ?? self.object(entity.name ?? "", line.key, line: start + offset)
                    object = owner
                    if relationship.isOrdered {
                        owner.setValue(NSOrderedSet(array: others), forKey: name)
                    } else if relationship.isToMany {
                        owner.setValue(NSSet(array: others), forKey: name)
                    } else {
                        owner.setValue(others.first, forKey: name)
                    }
                }
            }
            try context.save()
            context.reset()
        }
    }

    private func object(_ text: String, of relationship: NSRelationshipDescription, line: Int) throws -> NSManagedObject
    {
        guard let reference = ExchangeFormat.reference(text) else {
            throw ExchangeFormat.failure("line \(line): \(relationship.name) has no IDs such as \"Venue/p12\"", line)
        }
        return try object(reference.entity, reference.key, line: line)
    }

    private func object(_ entity: String, _ key: Int64, line: Int) throws -> NSManagedObject {
        guard let root = roots[entity], let new = try keys.key(key, of: root),
            let store = context.persistentStoreCoordinator?.persistentStores.first?.identifier,
            let id = context.persistentStoreCoordinator?.managedObjectID(for: "x-coredata://\(store)/\(entity)/p\(new)")
        else { throw ExchangeFormat.failure("line \(line) names \(entity)/p\(key), which no line has", line) }
        return context.object(with: id)
    }
}

/// The lines of a file, read on demand.
private final class LineFile {
    private let handle: FileHandle
    private var buffer = Data()
    private var isAtEnd = false

    init(_ path: String) throws { handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path)) }

    deinit { try? handle.close() }

    func next() throws -> String? {
        while true {
            if let end = buffer.firstIndex(of: 10) {
                let line = String(decoding: buffer[buffer.startIndex..<end], as: UTF8.self)
                buffer = buffer[(end + 1)...]
                return line
            }
            guard !isAtEnd else {
                guard !buffer.isEmpty else { return nil }
                defer { buffer = Data() }
                return String(decoding: buffer, as: UTF8.self)
            }
            let more = try handle.read(upToCount: 1 << 18) ?? Data()
            isAtEnd = more.isEmpty
            // The buffer is made anew, so that the part that was read is released.
            buffer = Data(buffer) + more
        }
    }
}
