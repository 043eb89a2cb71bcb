import CoreData

/// Bad input of all kinds: predicates, store files, models and URIs made by a grammar or by mutation.
///
/// Everything is answered rightly or refused with an error; a trap ends the program, and with it the run.
enum Hostile: Scenario {
    static let name = "hostile"
    static let summary = "mutated predicates, store files, models, URIs: refused, or answered alike by both stores"
    static let stores = [StoreKind.sqlite]
    static let work = (figure: "inputs", floor: 200)
    static let inputs = Knob("inputs", 0, "inputs to end after; 0 to go on until the time is over")
    static let knobs = [inputs]
    static let sabotages = [Sabotage("wrong-answer", "disagree")]

    static func run(_ run: Run) throws {
        let stack = try run.open()
        let memory = NSPersistentStoreCoordinator(managedObjectModel: StressModel.shared)
        try memory.addPersistentStore(type: .inMemory, at: run.folder.appendingPathComponent("memory"))
        for coordinator in [stack, memory] { try fill(coordinator) }
        let pair = PredicatePair(run, stack.context(), memory.context())
        try run.close(try template(run))
        let file = try Data(contentsOf: templateURL(run))
        let limit = run.knob(inputs)
        var number = 0
        while limit > 0 ? number < limit : !run.isOver {
            number += 1
            // Each input is made from its own number, so that one alone can be made again.
            var stream = SeededStream(seed: run.options.seed, stream: UInt64(number))
            run.watchdog.beat(0, "hostile input")
            run.count("inputs")
            switch number % 40 {
            case 0: try openDamaged(file, run, number, &stream)
            case 1, 2: readModel(run, number, &stream)
            case 3, 4: ask(stack, run, number, &stream)
            case 5, 6, 7, 8: try pair.compareArgument(number, &stream)
            case 9, 10: pair.compareOrder(number, &stream)
            default: try pair.compare(number, &stream)
            }
        }
        run.watchdog.leave(0)
        try run.close(stack)
        try run.audit()
    }

    /// The same rows in each store, nil and repeated values among them.
    private static func fill(_ coordinator: NSPersistentStoreCoordinator) throws {
        let context = coordinator.context()
        try context.performAndWait {
            var nodes: [Node] = []
            let labels: [String?] = [
                nil, "", "a", "A", "ä", "O'Brien", "%@", "a*b?", "line\nbreak", "\u{1F980}", "🇩🇪", "ab",
            ]
            for serial in 0..<36 {
                let node = Node(context: context)
                node.serial = Int64(serial)
                node.first = Int64(serial % 5) - 2
                node.second = serial % 7 == 0 ? .max : Int64(serial * serial % 11)
                node.label = labels[serial % labels.count]
                if serial > 3 { node.parent = nodes[serial / 3] }
                nodes.append(node)
            }
            for serial in 0..<4 {
                let mark = Mark(context: context)
                mark.serial = Int64(serial)
                mark.nodes = Set(nodes.filter { $0.serial % 4 <= Int64(serial) && $0.serial % 3 == 0 })
            }
            try context.save()
        }
    }

    // MARK: - Files

    private static func templateURL(_ run: Run) -> URL { run.folder.appendingPathComponent("template.sqlite") }

    private static func template(_ run: Run) throws -> NSPersistentStoreCoordinator {
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: StressModel.shared)
        try coordinator.addPersistentStore(type: .sqlite, at: templateURL(run))
        try fill(coordinator)
        return coordinator
    }

    /// Opens and uses a file with bytes changed, or cut off.
    private static func openDamaged(_ file: Data, _ run: Run, _ number: Int, _ stream: inout SeededStream) throws {
        var bytes = file
        if stream.chance(0.3) {
            bytes = bytes.prefix(stream.below(bytes.count))
        } else {
            for _ in 0...stream.below(30) { bytes[stream.below(bytes.count)] = UInt8(stream.below(256)) }
        }
        let url = run.folder.appendingPathComponent("damaged-\(number).sqlite")
        try bytes.write(to: url)
        defer { for suffix in ["", "-wal", "-shm"] { unlink(url.path + suffix) } }
        let coordinator = NSPersistentStoreCoordinator(managedObjectModel: StressModel.shared)
        do {
            try coordinator.addPersistentStore(type: .sqlite, at: url)
            defer { try? run.close(coordinator) }
            let context = coordinator.context()
            try context.performAndWait {
                let nodes = try context.fetch(NSFetchRequest<Node>(entityName: "Node"))
                for node in nodes { _ = (node.label, node.parent?.serial, node.children.count, node.marks.count) }
                nodes.first?.first += 1
                try context.save()
            }
            run.count("files-used")
        } catch is CocoaError {
            run.count("files-refused")
        } catch {
            run.find("input \(number): a damaged file gave \(describe(error))")
        }
    }

    // MARK: - Models and URIs

    private static let modelText = """
        <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
        <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" userDefinedModelVersionIdentifier="">
            <entity name="Base" isAbstract="YES"><attribute name="name" optional="YES" attributeType="String"/></entity>
            <entity name="Leaf" parentEntity="Base">
                <attribute name="count" attributeType="Integer 64" defaultValueString="0" usesScalarValueType="YES"/>
                <relationship name="owner" optional="YES" maxCount="1" deletionRule="Nullify" destinationEntity="Leaf" \
        inverseName="owned" inverseEntity="Leaf"/>
                <relationship name="owned" optional="YES" toMany="YES" deletionRule="Cascade" destinationEntity="Leaf" \
        inverseName="owner" inverseEntity="Leaf"/>
                <uniquenessConstraints><uniquenessConstraint><constraint value="name"/></uniquenessConstraint>\
        </uniquenessConstraints>
            </entity>
        </model>
        """

    private static func readModel(_ run: Run, _ number: Int, _ stream: inout SeededStream) {
        let url = run.folder.appendingPathComponent("contents-\(number)")
        defer { unlink(url.path) }
        let text = mutated(modelText, &stream)
        guard (try? Data(text.utf8).write(to: url)) != nil else { return run.find("a model cannot be written") }
        do {
            let model = try NSManagedObjectModel(reading: url)
            _ = model.entityVersionHashesByName
            run.count("models-read")
        } catch {
            run.count("models-refused")
        }
    }

    /// Asks for objects by URIs that nobody has made.
    private static func ask(
        _ stack: NSPersistentStoreCoordinator,
        _ run: Run,
        _ number: Int,
        _ stream: inout SeededStream
    ) {
        let identifier = stack.persistentStores.first?.identifier ?? ""
        let text = mutated("x-coredata://\(identifier)/Node/p\(stream.below(60))", &stream)
        guard let url = URL(string: text), let id = stack.managedObjectID(forURIRepresentation: url) else {
            return run.count("uris-refused")
        }
        let context = stack.context()
        context.performAndWait {
            do {
                _ = try context.existingObject(with: id)
                run.count("uris-found")
            } catch let error as CocoaError where error.code == .managedObjectReferentialIntegrity {
                run.count("uris-refused")
            } catch {
                run.find("input \(number): \(text) gave \(describe(error))")
            }
        }
    }

    /// A text with characters lost, doubled, swapped or replaced.
    static func mutated(_ text: String, _ stream: inout SeededStream) -> String {
        var characters = Array(text)
        let strange: [Character] = [
            "\"", "'", "<", "&", "%", "(", ")", "{", "\\", "\u{0}", "$", "9", " ", "ﬁ", "\u{301}", "/",
        ]
        for _ in 0...stream.below(4) where !characters.isEmpty {
            let place = stream.below(characters.count)
            switch stream.below(4) {
            case 0: characters.remove(at: place)
            case 1: characters.insert(characters[stream.below(characters.count)], at: place)
            case 2: characters[place] = stream.pick(strange)
            default:
                let other = stream.below(characters.count)
                let part = Array(characters[min(place, other)...max(place, other)].prefix(60))
                characters.insert(contentsOf: part, at: place)
            }
        }
        return String(characters)
    }
}
