import CoreData

/// Two contexts change the same society at the same time. The policy of the second one decides the outcome.
extension SocietyProgram {
    private enum Policy: CaseIterable {
        case error, storeTrump, objectTrump, overwrite, rollback

        var policy: NSMergePolicy {
            switch self {
            case .error: .error
            case .storeTrump: .mergeByPropertyStoreTrump
            case .objectTrump: .mergeByPropertyObjectTrump
            case .overwrite: .overwrite
            case .rollback: .rollback
            }
        }
    }

    /// Nothing comes or goes.
    ///
    /// Properties are merged one by one, or objects as a whole.
    func conflict(_ stream: inout SeededStream) throws -> String? {
        let policy = stream.pick(Policy.allCases)
        note("\(policy)")
        let base = stored
        let mine = desk(policy.policy, undoes: stream.chance(0.3))
        if let trouble = try check(mine, base, "before a conflict") { return trouble }
        // Often both sides change the same person.
        let target = stream.chance(0.6) ? stream.pick(base.people.keys.sorted()) : nil
        let other = desk()
        var theirs = stored
        note("others:")
        for _ in 0..<(1 + stream.below(3)) { try make(draw(theirs, about: target, &stream), at: other, &theirs) }
        try other.perform { try other.context.save() }
        settle(theirs, other)
        note("end of others")
        var seen = base
        var steps: [Society] = []
        let count = 1 + stream.below(4)
        for _ in 0..<count {
            let edit = draw(seen, about: target, &stream)
            // Another drill is about conflicts of unique values.
            if case .swapCodes = edit { return nil }
            if case .code = edit { return nil }
            try make(edit, at: mine, &seen)
            steps.append(seen)
        }
        let merge = SocietyMerge(base: base, mine: seen, theirs: theirs)
        note("save")
        do { try mine.perform { try mine.context.save() } } catch let error as CocoaError
            where error.code == .managedObjectMerge && policy == .error
        {
            return try check(mine, seen, "after a refused save") ?? checkStore("after a refused save")
        } catch let error as CocoaError
            where error.code == .managedObjectConstraintMerge && policy == .overwrite
            && base.people.contains(where: { $1.code != theirs.people[$0]?.code })
        {
            // It would store the old unique value again, which others have given to another person.
            return try check(mine, seen, "after a save of what others have") ?? checkStore("after a refused save")
        }
        if policy == .error, let serial = merge.contested.first ?? merge.reordered.first {
            return "both have changed \(serial), and neither save was refused"
        }
        let result = try takeStored()
        let shown = try mine.perform { try mine.picture() }
        for serial in merge.contested
        where policy == .overwrite
            ? !SocietyMerge.isSame(shown.people[serial], result.people[serial])
            : shown.people[serial] != result.people[serial]
        {
            return "after a save with the policy \(policy), \(serial) is \(text(shown.people[serial])) here, "
                + "and \(text(result.people[serial])) to a new context"
        }
        for serial in merge.contested {
            if let other = shown.stranger(to: serial) {
                return "after a save with the policy \(policy), \(serial) and \(other) do not agree: "
                    + "\(text(shown.people[serial])), \(text(shown.people[other]))"
            }
        }
        let trouble =
            switch policy {
            case .error: merge.difference(result, storeWins: false)
            case .storeTrump: merge.difference(result, storeWins: true)
            case .objectTrump: merge.difference(result, storeWins: false)
            case .overwrite: merge.difference(ofWhole: result, storeWins: false)
            case .rollback: merge.difference(ofWhole: result, storeWins: true)
            }
        if let trouble { return "after a save with the policy \(policy): \(trouble)" }
        guard mine.context.undoManager != nil, policy == .storeTrump || policy == .objectTrump else { return nil }
        // The changes that the policy has brought are no step: undo takes back the own changes only.
        for _ in 0..<count { mine.perform { mine.context.undo() } }
        let undone = try mine.perform { try mine.picture() }
        return merge.differenceOfValues(undone, steps).map { "after undo of a resolved save: \($0)" }
    }

    /// Draws a change in which nothing comes or goes; of the given person, if one can be drawn.
    private func draw(_ seen: Society, about person: Int64?, _ stream: inout SeededStream) -> SocietyEdit {
        var edit = draw(seen, .lasting, &stream)
        guard let person else { return edit }
        // A new order of a list makes conflicts of orders likely.
        if let pupils = seen.people[person]?.pupils, pupils.count > 1, stream.chance(0.3) {
            return .shuffle(person, pupils.reversed())
        }
        for _ in 0..<20 where !edit.people.contains(person) { edit = draw(seen, .lasting, &stream) }
        return edit
    }

    /// A policy gives up after it has resolved something.
    ///
    /// Everything must then be as before.
    func refuse(_ stream: inout SeededStream) throws -> String? {
        let policy = GivingUp(
            stream.pick([
                .mergeByPropertyStoreTrumpMergePolicyType, .overwriteMergePolicyType,
                .mergeByPropertyObjectTrumpMergePolicyType, .rollbackMergePolicyType,
            ]),
            after: stream.below(2)
        )
        let mine = desk(policy)
        if let trouble = try check(mine, stored, "before a conflict") { return trouble }
        var seen = stored
        var changed: Set<Int64> = []
        for _ in 0..<(1 + stream.below(4)) {
            let edit = draw(seen, .lasting, &stream)
            if case .swapCodes = edit { continue }
            if case .code = edit { continue }
            changed.formUnion(edit.people)
            try make(edit, at: mine, &seen)
        }
        _ = try letOthersSave(4, .lasting, &stream)
        var later = stream
        policy.letOthersSave = { [unowned self] in _ = try self.letOthersSave(2, .lasting, &later) }
        note("save")
        do {
            try mine.perform { try mine.context.save() }
        } catch is GivenUp {
            policy.letOthersSave = nil
            let shown = try mine.perform { try mine.picture() }
            for serial in changed.sorted() where !SocietyMerge.isSame(shown.people[serial], seen.people[serial]) {
                return "after a save that was given up \(serial) is \(text(shown.people[serial])), "
                    + "expected \(text(seen.people[serial]))"
            }
            return try checkStore("after a save that was given up")
        }
        policy.letOthersSave = nil
        // There was no conflict, or only one.
        _ = try takeStored()
        return nil
    }

    /// Takes what a new context shows as the stored society, where only parts of it are certain.
    private func takeStored() throws -> Society {
        let reader = desk()
        stored = try reader.perform { try reader.picture() }
        return stored
    }

    private func text(_ person: Society.Person?) -> String { person.map { "\($0)" } ?? "gone" }

    /// One context adds a tool to a person whom another one deletes, and may merge that.
    ///
    /// Nothing may be lost silently.
    private func giveToTheDeleted(_ stream: inout SeededStream) throws -> String? {
        let serial = stream.pick(stored.people.keys.sorted())
        guard let tool = stored.tools.keys.sorted().first(where: { stored.owner(of: $0) == nil }) else { return nil }
        let (mine, other) = (desk(), desk())
        var (seen, theirs) = (stored, stored)
        try make(.give(tool, serial), at: mine, &seen)
        let mail = SocietyMail(.NSManagedObjectContextDidSave, of: other.context)
        defer { mail.stop() }
        note("others:")
        try make(.deletePerson(serial), at: other, &theirs)
        try other.perform { try other.context.save() }
        settle(theirs, other)
        if stream.chance(0.7) {
            note("merge")
            for message in mail.take() { mine.perform { mine.context.mergeChanges(fromContextDidSave: message) } }
        }
        note("save")
        do { try mine.perform { try mine.context.save() } } catch let error as CocoaError
            where error.code == .managedObjectMerge
        { return try checkStore("after a refused save") }
        return "tool \(tool) was given to \(serial), who was deleted, and no save was refused"
    }

    /// One context deletes what another one changes.
    func delete(_ stream: inout SeededStream) throws -> String? {
        if stream.chance(0.15) { return try giveToTheDeleted(&stream) }
        let policy = stream.pick(Policy.allCases)
        note("\(policy)")
        let mine = desk(policy.policy)
        let late = desk()
        for one in [mine, late] { if let trouble = try check(one, stored, "before a conflict") { return trouble } }
        let serial = stream.pick(stored.people.keys.sorted())
        let rank = (stored.people[serial]?.rank ?? 0) + 1
        let memoryWins = policy == .objectTrump || policy == .overwrite
        var seen = stored
        let deletesHere = stream.chance(0.5)
        let other = desk()
        var theirs = stored
        try make(deletesHere ? .deletePerson(serial) : .rank(serial, rank), at: mine, &seen)
        note("others:")
        try make(deletesHere ? .rank(serial, rank) : .deletePerson(serial), at: other, &theirs)
        try other.perform { try other.context.save() }
        settle(theirs, other)
        note("save")
        do { try mine.perform { try mine.context.save() } } catch let error as CocoaError
            where error.code == .managedObjectMerge && policy == .error
        {
            return try check(mine, seen, "after a refused save") ?? checkStore("after a refused save")
        }
        if policy == .error {
            return "one has deleted \(serial), the other has changed it, and neither save was refused"
        }
        if deletesHere {
            if memoryWins { stored.deletePerson(serial) }
            let moment = "after a deletion with the policy \(policy)"
            return try check(mine, stored, moment) ?? checkStore(moment)
        }
        guard memoryWins else {
            return try check(mine, stored, "after a change of what is gone")
                ?? checkStore("after a change of what is gone")
        }
        if try takeStored().people[serial]?.rank != rank {
            return "\(serial) was not brought back by the policy \(policy)"
        }
        // A context that has loaded it before its deletion has an old row.
        try late.perform { try late.person(serial).rank = rank + 1 }
        do { try late.perform { try late.context.save() } } catch let error as CocoaError
            where error.code == .managedObjectMerge
        { return nil }
        return "\(serial) was saved upon a row from before its deletion: lost update"
    }
}

/// The error of a policy that gives up.
private struct GivenUp: Error {}

/// Resolves conflicts as another policy does, and gives up after some rounds.
///
/// Before each further round, others may save.
private final class GivingUp: NSMergePolicy, @unchecked Sendable {
    // @unchecked Sendable: one thread makes it, saves with it and releases it.

    private var left: Int
    var letOthersSave: (() throws -> Void)?

    init(_ type: NSMergePolicyType, after rounds: Int) {
        left = rounds
        super.init(merge: type)
    }

    override func resolve(optimisticLockingConflicts list: [NSMergeConflict]) throws {
        try super.resolve(optimisticLockingConflicts: list)
        if left == 0 { throw GivenUp() }
        left -= 1
        try letOthersSave?()
    }
}
