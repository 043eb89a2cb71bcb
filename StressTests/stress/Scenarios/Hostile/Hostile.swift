import CoreData

/// Bad input of all kinds, made by a grammar or by mutation: predicates, store files, models, mapping models and
/// URIs.
///
/// Every input must be answered correctly, or refused with an error. A trap ends the program, and with it the run.
///
/// Before the inputs, files of a store are moved away while it is open, other contents are put into them, and values
/// that no store keeps are saved.
enum Hostile: Scenario {
    static let name = "hostile"
    static let summary =
        "bad predicates, store files, models, mapping models, URIs, tokens: refused, or answered alike by both stores"
    static let stores = [StoreKind.sqlite]
    static let work = (figure: "inputs", floor: 200)
    static let inputs = Knob("inputs", 0, "inputs to end after; 0 to go on until the time is over")
    static let input = Knob("input", 0, "make the input of this number only; 0 for all")
    static let knobs = [inputs, input]
    static let parts = HostileInputs.Kind.allCases.map(\.rawValue)
    static let sabotages =
        [
            Sabotage("wrong-answer", "disagree"), Sabotage("trap", "ended in input 90: stress hostile", exit: nil),
            Sabotage("obedient", "not refused with"),
        ] + Sabotage.ofGuard("no-file-place-check", "a save has succeeded though")
        + Sabotage.ofGuard("no-number-check", "that is no number was saved")
        + Sabotage.ofGuard("no-restoration-mark", "has overwritten what others have saved after a backup")
        + Sabotage.ofGuard("no-store-check", "after another store was put into its file")
    /// The number of inputs after which the kinds repeat.
    static let kinds = 40

    static func run(_ run: Run) throws {
        let stack = try run.open([NSPersistentHistoryTrackingKey: true])
        let memory = NSPersistentStoreCoordinator(managedObjectModel: StressModel.shared)
        try memory.addPersistentStore(type: .inMemory, at: run.folder.appendingPathComponent("memory"))
        for coordinator in [stack, memory] { try fill(coordinator) }
        let inputs = HostileInputs(
            pair: PredicatePair(run, stack.context(), memory.context()),
            files: try HostileFiles(run),
            models: HostileModels(run),
            tokens: HostileTokens(run, stack),
            mappings: try HostileMappings(run)
        )
        CurrentInput.prepare(run)
        let only = run.knob(input)
        let limit = only > 0 ? only : run.knob(self.inputs)
        if only == 0, run.options.only == nil {
            try MovedFiles.run(run)
            try RestoredFile.run(run)
            try UnstorableNumber.run(run, stack)
        }
        var number = max(only - 1, 0)
        while limit > 0 ? number < limit : !run.isOver {
            number += 1
            if let kind = run.options.only, HostileInputs.kind(number).rawValue != kind { continue }
            // Each input is made from its own number, so that a single one can be made again.
            var stream = SeededStream(seed: run.options.seed, stream: UInt64(number))
            run.watchdog.beat(0, "hostile input")
            run.count("inputs")
            CurrentInput.note(number)
            try inputs.make(number, run, stack, &stream)
        }
        CurrentInput.leave()
        run.watchdog.leave(0)
        try run.close(stack)
        try run.audit()
    }

    /// Fills a store with the same rows each time, with nil and repeated values among them.
    static func fill(_ coordinator: NSPersistentStoreCoordinator) throws {
        let context = coordinator.context()
        try context.performAndWait {
            var nodes: [Node] = []
            let labels: [String?] = [
                nil, "", "a", "A", "ä", "O'Brien", "%@", "a*b?", "line\nbreak", "\u{1F980}", "🇩🇪", "ab", "a\u{E000}",
            ]
            for serial in 0..<36 {
                let node = Node(context: context)
                node.serial = Int64(serial)
                node.first = Int64(serial % 5) - 2
                node.second = serial % 7 == 0 ? .max : Int64(serial * serial % 11)
                node.label = labels[serial % labels.count]
                node.share = Double(serial % 4) / 2
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

    /// A text in which characters are removed, doubled, replaced, or inserted.
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
