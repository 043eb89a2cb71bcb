import CoreData

/// The classic anomalies, each in all orders of its steps, under all policies.
///
/// Those that happen and those that are prevented must be exactly those of the published table.
enum Anomalies: Scenario {
    static let name = "anomalies"
    static let summary = "ten classic anomalies in all orders of their steps; the table must be the published one"
    static let runsOnPostgreSQL = true
    static let work = (figure: "orders", floor: 1_000)
    static let sabotages =
        [Sabotage("swapped-policy", "error policy"), Sabotage("unpinned", "error, pinned")]
        + Sabotage.ofGuard("no-revival-check", "have brought a row back")
        + Sabotage.ofGuard("no-revival-check", "have brought a row back", store: .memory) + historySabotages
    private static let historySabotages =
        Sabotage.ofGuard("no-change-watching", "is not notified", store: .postgresql)
        + Sabotage.ofGuard("no-wake-up", "no wake-up", store: .postgresql)

    /// How the contexts of a case work.
    private struct Mode {
        let name: String
        var policy = NSMergePolicy.error
        var detects = false
        var isPinned = false
        var coordinators = 1
        var isTree = false
        var parentPolicy: NSMergePolicy?
    }

    private static let modes = [
        Mode(name: "error policy"),
        Mode(name: "error, detecting", detects: true),
        Mode(name: "error, pinned", isPinned: true),
        Mode(name: "error, two coordinators", coordinators: 2),
        Mode(name: "error, pinned, two coordinators", isPinned: true, coordinators: 2),
        Mode(name: "store trump", policy: .mergeByPropertyStoreTrump),
        Mode(name: "object trump", policy: .mergeByPropertyObjectTrump),
        Mode(name: "overwrite", policy: .overwrite),
        Mode(name: "rollback", policy: .rollback),
        Mode(name: "siblings", isTree: true),
        Mode(name: "siblings, error policy", isTree: true, parentPolicy: .error),
    ]

    /// The published table: the anomalies that happen in some order of the steps.
    ///
    /// An anomaly that a mode does not name is prevented.
    private static let happening: [String: Set<String>] = [
        "error policy": ["PMP", "G-single", "G2-item", "G2"],
        "error, detecting": ["PMP", "G-single", "G2"],
        "error, pinned": ["G2-item", "G2"],
        "error, pinned, two coordinators": ["G2-item", "G2"],
        "error, two coordinators": ["PMP", "G-single", "G2-item", "G2"],
        // These two policies give up single writes, so half of a transaction can remain.
        "store trump": ["G0", "PMP", "P4", "G-single", "G2-item", "G2"],
        "rollback": ["G0", "PMP", "P4", "G-single", "G2-item", "G2"],
        "object trump": ["PMP", "P4", "G-single", "G2-item", "G2"],
        "overwrite": ["PMP", "P4", "G-single", "G2-item", "G2"],
        "siblings": ["PMP", "P4", "G-single", "G2-item", "G2"],
        "siblings, error policy": ["PMP", "G-single", "G2-item", "G2"],
    ]

    static func run(_ run: Run) throws {
        let stacks = try (0..<(run.kind.isShared ? 2 : 1)).map { _ in try run.open() }
        var number: Int64 = 0
        // Stores in memory can be neither shared nor pinned.
        let possible = modes.filter { run.kind.isShared || $0.coordinators == 1 && !$0.isPinned }
        // Only a history shows which saves others are notified of.
        if !historySabotages.contains(where: { run.isSabotaged($0.name) }) {
            try tryAll(possible, run, stacks, nil, &number)
        }
        if run.options.anomaly == nil { try RevivedRow.run(run, stacks[0]) }
        for stack in stacks { try run.close(stack) }
        try run.audit()
        guard run.kind == .postgresql else { return }
        // With a history, one coordinator is notified of the other's saves, which changes what can be seen there.
        let place = run.folder.appendingPathComponent("recorded.sqlite")
        let recording = try (0..<2).map { _ in try run.open(SavesOfOthers.options, at: place) }
        // A portable store has no wake-ups: to wait for a look after each step would take an hour.
        let isWoken = recording[0].statistics().stores.first?.tablePlacement != .portable
        let others = isWoken ? SavesOfOthers(run, recording) : nil
        try tryAll(possible.filter { $0.coordinators > 1 && !$0.isPinned }, run, recording, others, &number)
        others?.end()
        for stack in recording { try run.close(stack) }
        try run.audit(of: place)
    }

    /// Tries the cases in some modes.
    ///
    /// - Parameters:
    ///   - modes: The modes.
    ///   - run: The run, which collects the findings.
    ///   - stacks: The coordinators, on one store.
    ///   - others: Waits until each coordinator is notified of the others' saves; `nil` if there are no
    ///     notifications.
    ///   - number: The number of the last trial.
    /// - Throws: Errors other than conflicts.
    private static func tryAll(
        _ modes: [Mode],
        _ run: Run,
        _ stacks: [NSPersistentStoreCoordinator],
        _ others: SavesOfOthers?,
        _ number: inout Int64
    ) throws {
        for mode in modes {
            /// For each case, an order in which it happens, with as few turns as possible.
            var happened: [String: [Int]] = [:]
            var used = mode
            if run.isSabotaged("swapped-policy"), mode.name == "error policy" { used.policy = .overwrite }
            if run.isSabotaged("unpinned") { used.isPinned = false }
            let tried = AnomalyCase.all.filter { run.options.anomaly ?? $0.name == $0.name }
            for kase in tried {
                for order in kase.orders {
                    run.watchdog.beat(0, "an order of an anomaly's steps")
                    number += 1
                    let trial = try AnomalyTrial(
                        (0..<kase.scripts.count).map { stacks[$0 % used.coordinators] },
                        number,
                        used.isTree
                    ) { context in
                        context.mergePolicy = used.policy
                        context.parentConflictPolicy = used.parentPolicy
                        if used.isPinned { try context.setQueryGenerationFrom(.current) }
                    }
                    trial.detects = used.detects
                    trial.others = others
                    try others?.hear()
                    if kase.hasHappened(try trial.run(kase, order)),
                        happened[kase.name].map({ turns(order) < turns($0) }) ?? true
                    {
                        happened[kase.name] = order
                    }
                    run.count("orders")
                }
            }
            var expected = (happening[mode.name] ?? []).intersection(tried.map(\.name))
            // Without a history, nothing notifies one coordinator of the other's saves, so cached rows stay as they
            // were read.
            if run.kind == .postgresql, mode.coordinators > 1, others == nil { expected.remove("G-single") }
            let names = Set(happened.keys)
            if names != expected {
                run.find("\(mode.name): \(names.sorted()) can happen, published are \(expected.sorted())")
            }
            for kase in tried {
                guard let order = happened[kase.name] else { continue }
                let text = "\(mode.name): \(kase.name) happens in this order:\n" + kase.listing(order)
                if !expected.contains(kase.name) {
                    run.find(text + "\n    " + run.options.replay(run, ["--case", kase.name]))
                } else if run.options.anomaly != nil, !run.options.json {
                    say(text)
                }
            }
        }
        run.watchdog.leave(0)
    }

    /// How often the turn passes to another transaction.
    private static func turns(_ order: [Int]) -> Int { zip(order, order.dropFirst()).count { $0 != $1 } }
}

/// One order of a case's steps, on new rows and in new contexts.
private final class AnomalyTrial {
    private let number: Int64
    private let contexts: [NSManagedObjectContext]
    /// For each transaction, the IDs of x and y for its coordinator.
    private let ids: [[String: NSManagedObjectID]]
    /// The context that reads the state at the end: the parent, or a separate one.
    private let witness: NSManagedObjectContext
    /// The objects that transactions have read; they are kept alive.
    private var held: [NSManagedObject] = []
    var detects = false
    var others: SavesOfOthers?

    init(
        _ stacks: [NSPersistentStoreCoordinator],
        _ number: Int64,
        _ isTree: Bool,
        _ setUp: (NSManagedObjectContext) throws -> Void
    ) throws {
        self.number = number
        let maker = stacks[0].context()
        let uris = try maker.performAndWait {
            let rows = [("x", Int64(10)), ("y", 20)].map { name, value in
                let account = Account(context: maker)
                account.number = number
                account.balance = value
                return (name, account)
            }
            try maker.save()
            return rows.map { ($0, $1.objectID.uriRepresentation()) }
        }
        ids = stacks.map { stack in
            Dictionary(uniqueKeysWithValues: uris.map { ($0, stack.managedObjectID(forURIRepresentation: $1)!) })
        }
        witness = stacks[0].context()
        witness.stalenessInterval = 0
        let witness = witness
        contexts = stacks.map { stack in
            guard isTree else { return stack.context() }
            let child = NSManagedObjectContext(.privateQueue)
            child.parent = witness
            return child
        }
        for context in contexts { try context.performAndWait { try setUp(context) } }
    }

    func run(_ kase: AnomalyCase, _ order: [Int]) throws -> AnomalyOutcome {
        var outcome = AnomalyOutcome(parts: kase.scripts.map { _ in AnomalyOutcome.Part() })
        var done = kase.scripts.map { _ in 0 }
        for turn in order {
            try contexts[turn].performAndWait { try take(kase.scripts[turn][done[turn]], turn, &outcome) }
            done[turn] += 1
        }
        try witness.performAndWait {
            for (name, id) in ids[0] {
                outcome.final[name] = (try witness.existingObject(with: id) as? Account)?.balance
            }
        }
        for (context, index) in zip(contexts, contexts.indices) {
            context.performAndWait { held.removeAll { $0.managedObjectContext === contexts[index] } }
        }
        return outcome
    }

    private func account(_ name: String, _ turn: Int) throws -> Account {
        guard let id = ids[turn][name], let account = try contexts[turn].existingObject(with: id) as? Account else {
            throw StressError("\(name) is of another class")
        }
        held.append(account)
        if detects { contexts[turn].detectConflicts(for: account) }
        return account
    }

    private func take(_ step: AnomalyStep, _ turn: Int, _ outcome: inout AnomalyOutcome) throws {
        let context = contexts[turn]
        switch step {
        case .read(let names):
            for name in names { outcome.parts[turn].reads.append((name, try account(name, turn).balance)) }
        case .write(let values):
            for (name, value) in values { try account(name, turn).balance = value }
        case .increment(let name): try account(name, turn).balance += 1
        case .scan:
            let request = NSFetchRequest<Account>(entityName: "Account")
            request.predicate = NSPredicate(format: "number == %@ AND balance == 30", number)
            outcome.parts[turn].scans.append(try context.count(for: request))
        case .insert:
            let account = Account(context: context)
            account.number = number
            account.balance = 30
        case .save:
            do {
                try context.save()
                try others?.hear()
                outcome.parts[turn].isSaved = true
                outcome.saved.append(turn)
            } catch let error as CocoaError where error.code == .managedObjectMerge {
                context.rollback()
            }
        case .rollback: context.rollback()
        }
    }
}
