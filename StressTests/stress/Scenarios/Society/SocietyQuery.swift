import CoreData

/// A query with exactly one right result, in order.
///
/// It can be fetched, and a society can answer it.
struct SocietyQuery {
    enum Condition {
        case none
        case rank(Int64)
        case nameless
        case style(Int64)
        case teacherRank(Int64)
        case friendRank(Int64)
        case toolWeight(Int64)
        case pupils(Int)
        case friends(Int)
        case inClub
        indirect case not(Condition)
    }

    var condition = Condition.none
    /// The key paths and directions.
    ///
    /// The serial number is always the last key.
    var order: [(key: String, ascending: Bool)] = []
    var isOfArtists = false
    var includesArtists = true
    var limit = 0
    var offset = 0
    var batchSize = 0
    var prefetched: [String] = []

    static func draw(_ stream: inout SeededStream) -> SocietyQuery {
        var query = SocietyQuery()
        query.condition = condition(&stream)
        for key in ["rank", "name", "teacher.rank"].shuffled(using: &stream) where stream.chance(0.4) {
            query.order.append((key, stream.chance(0.5)))
        }
        query.order.append(("serial", stream.chance(0.7)))
        query.isOfArtists = stream.chance(0.2)
        query.includesArtists = stream.chance(0.8)
        if stream.chance(0.5) { query.limit = 1 + stream.below(4) }
        if stream.chance(0.4) { query.offset = 1 + stream.below(3) }
        if stream.chance(0.2) { query.batchSize = 1 + stream.below(4) }
        if stream.chance(0.3) {
            query.prefetched = [stream.pick(["pupils", "friends", "tools", "clubs", "teacher.friends"])]
        }
        return query
    }

    private static func condition(_ stream: inout SeededStream) -> Condition {
        let rank = Int64(1 + stream.below(3))
        let one: Condition =
            switch stream.below(13) {
            case 0, 1: .none
            case 2, 3: .rank(rank)
            case 4: .nameless
            case 5: .style(rank)
            case 6: .teacherRank(rank)
            case 7: .friendRank(rank)
            case 8: .toolWeight(rank)
            case 9: .pupils(stream.below(3))
            case 10, 11: .friends(stream.below(3))
            default: .inClub
            }
        return stream.chance(0.2) ? .not(one) : one
    }

    // MARK: - The fetch

    /// The request.
    func request<Result>(
        _ type: Result.Type,
        _ resultType: NSFetchRequestResultType = .managedObjectResultType
    ) -> NSFetchRequest<Result> {
        let request = NSFetchRequest<Result>(entityName: isOfArtists ? "Artist" : "Person")
        (request.resultType, request.includesSubentities) = (resultType, includesArtists)
        request.predicate = predicate(condition)
        request.sortDescriptors = order.map { NSSortDescriptor(key: $0.key, ascending: $0.ascending) }
        (request.fetchLimit, request.fetchOffset, request.fetchBatchSize) = (limit, offset, batchSize)
        request.relationshipKeyPathsForPrefetching = prefetched
        return request
    }

    private func predicate(_ condition: Condition) -> NSPredicate? {
        switch condition {
        case .none: nil
        case .rank(let rank): NSPredicate(format: "rank >= %@", rank)
        case .nameless: NSPredicate(format: "name == nil")
        // Only artists have a style. For all people, the condition is about their rank.
        case .style(let style): NSPredicate(format: isOfArtists ? "style >= %@" : "rank <= %@", style)
        case .teacherRank(let rank): NSPredicate(format: "teacher.rank >= %@", rank)
        case .friendRank(let rank): NSPredicate(format: "ANY friends.rank >= %@", rank)
        case .toolWeight(let weight): NSPredicate(format: "ANY tools.weight >= %@", weight)
        case .pupils(let count): NSPredicate(format: "pupils.@count > %@", count)
        case .friends(let count): NSPredicate(format: "friends.@count > %@", count)
        case .inClub: NSPredicate(format: "clubs.@count > 0")
        case .not(let operand):
            predicate(operand).map { NSCompoundPredicate(notPredicateWithSubpredicate: $0) }
        }
    }

    // MARK: - The answer

    /// The serial numbers that the fetch must return.
    func answer(_ society: Society) -> [Int64] {
        var found = society.people.keys.filter { serial in
            guard let person = society.people[serial] else { return false }
            if person.style == nil ? isOfArtists : !isOfArtists && !includesArtists { return false }
            return holds(condition, person, society)
        }
        found.sort { isBefore($0, $1, society) }
        let page = found.dropFirst(offset)
        return Array(limit > 0 ? page.prefix(limit) : page)
    }

    private func holds(_ condition: Condition, _ person: Society.Person, _ society: Society) -> Bool {
        switch condition {
        case .none: true
        case .rank(let rank): person.rank >= rank
        case .nameless: person.name == nil
        case .style(let style): isOfArtists ? person.style ?? 0 >= style : person.rank <= style
        case .teacherRank(let rank): society.people[person.teacher].map { $0.rank >= rank } ?? false
        case .friendRank(let rank): person.friends.contains { society.people[$0]?.rank ?? 0 >= rank }
        case .toolWeight(let weight): person.tools.contains { society.tools[$0] ?? 0 >= weight }
        case .pupils(let count): person.pupils.count > count
        case .friends(let count): person.friends.count > count
        case .inClub: !person.clubs.isEmpty
        case .not(.none): true
        case .not(let operand): !holds(operand, person, society)
        }
    }

    private func isBefore(_ one: Int64, _ other: Int64, _ society: Society) -> Bool {
        for (key, ascending) in order {
            let (first, second) = (rank(key, one, society), rank(key, other, society))
            if first != second { return (first < second) == ascending }
        }
        return false
    }

    /// The value of a person for one sort key; a missing value sorts first.
    private func rank(_ key: String, _ serial: Int64, _ society: Society) -> Int64 {
        guard let person = society.people[serial] else { return 0 }
        switch key {
        case "rank": return person.rank
        case "name": return person.name.flatMap { $0.unicodeScalars.first }.map { Int64($0.value) } ?? -1
        case "teacher.rank": return society.people[person.teacher]?.rank ?? -1
        default: return serial
        }
    }
}

extension SocietyQuery: CustomStringConvertible {
    var description: String {
        let keys = order.map { "\($0.key) \($0.ascending ? "up" : "down")" }.joined(separator: ", ")
        return
            "\(isOfArtists ? "artists" : "people")\(includesArtists ? "" : " alone"), \(condition), by \(keys), limit \(limit), "
            + "offset \(offset), batches of \(batchSize), with \(prefetched)"
    }
}
