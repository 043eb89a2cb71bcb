/// The expected merge of two sets of changes to one society, in which nothing came or went.
struct SocietyMerge {
    let base: Society
    let mine: Society
    let theirs: Society

    private static let values: [(String, @Sendable (Society.Person) -> AnyHashable)] = [
        ("style", { $0.style }), ("rank", { $0.rank }), ("name", { $0.name }), ("code", { $0.code }),
        ("portrait", { $0.portrait }), ("teacher", { $0.teacher }),
    ]

    /// Whether two states of a person are the same, except for relationships that are changed from the other side.
    static func isSame(_ one: Society.Person?, _ other: Society.Person?) -> Bool {
        guard let one, let other else { return one == other }
        return values.allSatisfy { $1(one) == $1(other) } && one.friends == other.friends && one.clubs == other.clubs
    }

    /// The people for whom both sides have changed an attribute or the teacher.
    var contested: [Int64] {
        base.people.keys.sorted().filter { serial in
            guard let old = base.people[serial], let one = mine.people[serial], let other = theirs.people[serial] else {
                return true
            }
            func isChanged(_ person: Society.Person) -> Bool { Self.values.contains { $1(person) != $1(old) } }
            return isChanged(one) && isChanged(other)
        }
    }

    /// The people whose pupils both sides have put into another order.
    var reordered: [Int64] {
        base.people.keys.sorted().filter { serial in
            guard let old = base.people[serial]?.pupils else { return false }
            return [mine, theirs].allSatisfy { side in
                let order = side.people[serial]?.pupils ?? []
                return order != old && Set(order) == Set(old)
            }
        }
    }

    /// The first property of a result that is not the merge; `nil` if there is none.
    func difference(_ result: Society, storeWins: Bool) -> String? {
        for (serial, old) in base.people {
            guard let one = mine.people[serial], let other = theirs.people[serial], let person = result.people[serial]
            else { return "\(serial) is gone" }
            for (name, value) in Self.values {
                let isMine = value(one) != value(old) && !(storeWins && value(other) != value(old))
                let wanted = value(isMine ? one : other)
                if value(person) != wanted {
                    return "\(name) of \(serial) is \(value(person)), expected \(wanted)"
                }
            }
            func merged(_ old: Set<Int64>, _ mine: Set<Int64>, _ theirs: Set<Int64>) -> Set<Int64> {
                theirs.union(mine.subtracting(old)).subtracting(old.subtracting(mine))
            }
            let friends = merged(old.friends, one.friends, other.friends)
            if person.friends != friends { return "friends of \(serial) are \(person.friends), expected \(friends)" }
            let clubs = merged(old.clubs, one.clubs, other.clubs)
            if person.clubs != clubs { return "clubs of \(serial) are \(person.clubs), expected \(clubs)" }
            if let order = order(old.pupils, one.pupils, other.pupils, storeWins), person.pupils != order {
                return "pupils of \(serial) are \(person.pupils), expected \(order)"
            }
        }
        return nil
    }

    /// The expected list, where it is certain: if one side has changed it, or if both have only changed the order.
    private func order(_ old: [Int64], _ mine: [Int64], _ theirs: [Int64], _ storeWins: Bool) -> [Int64]? {
        if theirs == old, Set(mine) == Set(old) { return mine }
        if mine == old, Set(theirs) == Set(old) { return theirs }
        if Set(mine) == Set(old), Set(theirs) == Set(old) { return storeWins ? theirs : mine }
        return nil
    }

    /// The first property of the contested people that is not as on the winning side; `nil` if there is none.
    func difference(ofWhole result: Society, storeWins: Bool) -> String? {
        for serial in contested {
            guard let wanted = (storeWins ? theirs : mine).people[serial], let person = result.people[serial] else {
                return "\(serial) is gone"
            }
            for (name, value) in Self.values where value(person) != value(wanted) {
                return "\(name) of \(serial) is \(value(person)), expected \(value(wanted))"
            }
        }
        return nil
    }

    /// Checks the attributes of the contested people after undo: the own changes must be undone, and those of others
    /// must stay.
    ///
    /// - Parameters:
    ///   - undone: The society after undo.
    ///   - steps: The society after each of the own changes.
    /// - Returns: The fault; `nil` if there is none.
    func differenceOfValues(_ undone: Society, _ steps: [Society]) -> String? {
        for serial in contested {
            guard let old = base.people[serial], let other = theirs.people[serial], let person = undone.people[serial]
            else { return "\(serial) is gone" }
            for (name, value) in Self.values where name != "teacher" {
                // A change that was changed back is undone as well.
                let isMine = steps.contains { $0.people[serial].map(value) != value(old) }
                let wanted = isMine ? value(old) : value(other)
                if isMine, value(other) != value(old) { continue }
                if value(person) != wanted { return "\(name) of \(serial) is \(value(person)), expected \(wanted)" }
            }
        }
        return nil
    }
}
