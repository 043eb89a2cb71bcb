import CoreData

/// Makes inputs of all kinds.
struct HostileInputs {
    /// The kind of an input.
    enum Kind: String, CaseIterable {
        /// Predicates over nodes.
        case predicates
        /// Comparisons with arguments of any type.
        case arguments
        /// Keys to sort nodes by.
        case orders
        /// URIs of objects.
        case uris
        /// Places in a history, as JSON.
        case tokens
        /// Archived values.
        case archives
        /// Models.
        case models
        /// Mapping models, and migrations by them.
        case mappings
        /// Store files and their logs. In the corpus, these are statements that change a sound file.
        case files
        /// Entries of the corpus, mutated.
        case corpus
    }

    let pair: PredicatePair
    let files: HostileFiles
    let models: HostileModels
    let tokens: HostileTokens
    let mappings: HostileMappings

    /// The kind of the input with that number.
    static func kind(_ number: Int) -> Kind {
        if let entry = HostileCorpus.entry(number) { return entry.kind }
        switch number % Hostile.kinds {
        case 0, 11...14: return .files
        case 1, 2, 15, 16: return .models
        case 3, 4: return .uris
        case 5...8: return .arguments
        case 9, 10: return .orders
        case 17, 18: return .tokens
        case 19: return .archives
        case 20, 21: return .corpus
        case 22, 23: return .mappings
        default: return .predicates
        }
    }

    /// Makes the input with that number, and checks the outcome.
    func make(
        _ number: Int,
        _ run: Run,
        _ stack: NSPersistentStoreCoordinator,
        _ stream: inout SeededStream
    ) throws {
        if run.isSabotaged("trap"), number == 90 { fatalError("a sabotage") }
        if let (kind, text) = HostileCorpus.entry(number) {
            run.count("corpus")
            return try make(number, kind, text, run, stack, &stream)
        }
        let turn = number % Hostile.kinds
        switch Self.kind(number) {
        case .files where turn == 0: try files.openDamaged(number, &stream)
        case .files where turn == 11: try files.openCut(number)
        case .files where turn == 12: try files.openHot(number, &stream)
        case .files: try files.openWrong(number, &stream)
        case .models where turn < 3: models.readMutated(number, &stream)
        case .models: models.readWrong(number, &stream)
        case .uris: ask(number, run, stack, &stream)
        case .arguments: try pair.compareArgument(number, &stream)
        case .orders: pair.compareOrder(number, &stream)
        case .tokens: tokens.follow(number, &stream)
        case .mappings where turn == 22: try mappings.readMutated(number, &stream)
        case .mappings: try mappings.readWrong(number, &stream)
        case .archives: tokens.unarchive(number, &stream)
        case .corpus:
            let (kind, text) = stream.pick(HostileCorpus.entries)
            try make(number, kind, Hostile.mutated(text, &stream), run, stack, &stream)
        case .predicates: try pair.compare(number, &stream)
        }
    }

    /// Makes an input of the corpus, as it is or mutated.
    private func make(
        _ number: Int,
        _ kind: Kind,
        _ text: String,
        _ run: Run,
        _ stack: NSPersistentStoreCoordinator,
        _ stream: inout SeededStream
    ) throws {
        let identifier = stack.persistentStores.first?.identifier ?? ""
        let text = text.replacingOccurrences(of: HostileCorpus.storeMark, with: identifier)
        switch kind {
        case .predicates, .arguments: try pair.compare(number, text, mayBeRefused: true, &stream)
        case .orders: pair.compareOrder(number, text, &stream)
        case .uris: ask(number, text, run, stack)
        case .tokens, .archives: tokens.follow(number, text)
        case .models: models.read(number, text)
        case .files, .mappings, .corpus: try files.openEdited(number, text)
        }
    }

    /// Asks for objects by URIs that the framework has not made.
    private func ask(
        _ number: Int,
        _ run: Run,
        _ stack: NSPersistentStoreCoordinator,
        _ stream: inout SeededStream
    ) {
        let identifier = stack.persistentStores.first?.identifier ?? ""
        ask(
            number,
            Hostile.mutated("x-coredata://\(identifier)/Node/p\(stream.below(60))", &stream),
            run,
            stack
        )
    }

    private func ask(_ number: Int, _ text: String, _ run: Run, _ stack: NSPersistentStoreCoordinator) {
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
}
