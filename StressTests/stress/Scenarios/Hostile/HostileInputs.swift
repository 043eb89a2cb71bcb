import CoreData

/// What makes inputs of all kinds.
struct HostileInputs {
    let pair: PredicatePair
    let files: HostileFiles
    let models: HostileModels
    let tokens: HostileTokens

    /// Makes the input of that number, and looks at what comes of it.
    func make(
        _ number: Int,
        _ run: Run,
        _ stack: NSPersistentStoreCoordinator,
        _ stream: inout SeededStream
    ) throws {
        if run.isSabotaged("trap"), number == 90 { fatalError("a sabotage") }
        // Every second one at first, so that short runs try others as well.
        if number % 2 == 0, number / 2 <= HostileCorpus.entries.count {
            run.count("corpus")
            let (kind, text) = HostileCorpus.entries[number / 2 - 1]
            return try make(number, kind, text, run, stack, &stream)
        }
        switch number % Hostile.kinds {
        case 0: try files.openDamaged(number, &stream)
        case 1, 2: models.readMutated(number, &stream)
        case 3, 4: ask(number, run, stack, &stream)
        case 5, 6, 7, 8: try pair.compareArgument(number, &stream)
        case 9, 10: pair.compareOrder(number, &stream)
        case 11: try files.openCut(number)
        case 12: try files.openHot(number, &stream)
        case 13, 14: try files.openWrong(number, &stream)
        case 15, 16: models.readWrong(number, &stream)
        case 17, 18: tokens.follow(number, &stream)
        case 19: tokens.unarchive(number, &stream)
        case 20, 21:
            let (kind, text) = stream.pick(HostileCorpus.entries)
            try make(number, kind, Hostile.mutated(text, &stream), run, stack, &stream)
        default: try pair.compare(number, &stream)
        }
    }

    /// Makes an input of the corpus, as it is or mutated.
    private func make(
        _ number: Int,
        _ kind: HostileCorpus.Kind,
        _ text: String,
        _ run: Run,
        _ stack: NSPersistentStoreCoordinator,
        _ stream: inout SeededStream
    ) throws {
        let identifier = stack.persistentStores.first?.identifier ?? ""
        let text = text.replacingOccurrences(of: HostileCorpus.storeMark, with: identifier)
        switch kind {
        case .predicate: try pair.compare(number, text, mayBeRefused: true, &stream)
        case .order: pair.compareOrder(number, text, &stream)
        case .uri: ask(number, text, run, stack)
        case .token: tokens.follow(number, text)
        case .model: models.read(number, text)
        case .store: try files.openEdited(number, text)
        }
    }

    /// Asks for objects by URIs that nobody has made.
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
