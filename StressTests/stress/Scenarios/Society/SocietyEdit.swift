import CoreData

/// One change.
///
/// It is drawn so that it has an effect, and can be made both in a society and with objects.
enum SocietyEdit {
    case newPerson(Int64, style: Int64?, rank: Int64)
    case newTool(Int64)
    case newClub(Int64)
    case rank(Int64, Int64)
    case name(Int64, String?)
    case style(Int64, Int64)
    case code(Int64, String?)
    /// Two people swap their unique values.
    case swapCodes(Int64, Int64)
    case portrait(Int64, Int64)
    case weight(Int64, Int64)
    case teach(Int64, Int64)
    case place(Int64, Int64, Int)
    case shuffle(Int64, [Int64])
    case befriend(Int64, Int64)
    case part(Int64, Int64)
    /// One friend goes and another one comes, in a single assignment.
    case exchange(Int64, Int64, Int64)
    case give(Int64, Int64)
    case drop(Int64, Int64)
    case join(Int64, Int64)
    case enter(Int64, Int64, Int)
    case leave(Int64, Int64)
    case lead(Int64, Int64)
    case deletePerson(Int64)
    case deleteTool(Int64)
    case deleteClub(Int64)

    /// The kinds of change that may be drawn.
    enum Scope {
        /// Everything.
        case all
        /// Every change that can be undone after it was saved. The deletion of an owned tool is not: a tool that
        /// comes back has no owner, as it has no inverse.
        case reversible
        /// Changes of people's attributes and relationships; nothing comes or goes.
        case lasting
        /// Changes of people's attributes.
        case values
    }

    /// Makes the change in a society.
    func change(_ society: inout Society) {
        switch self {
        case .newPerson(let serial, let style, let rank):
            society.people[serial] = Society.Person(style: style, rank: rank)
        case .newTool(let serial): society.tools[serial] = 0
        case .newClub(let serial): society.clubs[serial] = Society.Club()
        case .rank(let serial, let rank): society.people[serial]?.rank = rank
        case .name(let serial, let name): society.people[serial]?.name = name
        case .style(let serial, let style): society.people[serial]?.style = style
        case .code(let serial, let code): society.people[serial]?.code = code
        case .swapCodes(let one, let other):
            let code = society.people[one]?.code
            let next = society.people[other]?.code
            society.people[one]?.code = next
            society.people[other]?.code = code
        case .portrait(let serial, let number): society.people[serial]?.portrait = number
        case .weight(let serial, let weight): society.tools[serial] = weight
        case .teach(let pupil, let teacher): society.teach(pupil, teacher)
        case .place(let pupil, let teacher, let place): society.teach(pupil, teacher, at: place)
        case .shuffle(let teacher, let order): society.people[teacher]?.pupils = order
        case .befriend(let one, let other): society.befriend(one, other)
        case .part(let one, let other): society.part(one, other)
        case .exchange(let one, let former, let next):
            society.part(one, former)
            society.befriend(one, next)
        case .give(let tool, let owner): society.people[owner]?.tools.insert(tool)
        case .drop(let tool, let owner): society.people[owner]?.tools.remove(tool)
        case .join(let person, let club): society.join(person, club)
        case .enter(let person, let club, let place): society.join(person, club, at: place)
        case .leave(let person, let club): society.leave(person, club)
        case .lead(let club, let head): society.lead(club, head)
        case .deletePerson(let serial): society.deletePerson(serial)
        case .deleteTool(let serial): society.deleteTool(serial)
        case .deleteClub(let serial): society.deleteClub(serial)
        }
    }

    // MARK: - Drawing

    /// Draws a change.
    ///
    /// - Parameters:
    ///   - society: The society to change.
    ///   - scope: The kinds of change that may be drawn.
    ///   - next: Returns a new serial number.
    ///   - stream: The source of the draw.
    /// - Returns: The change.
    static func draw(
        _ society: Society,
        _ scope: Scope,
        _ next: () -> Int64,
        _ stream: inout SeededStream
    ) -> SocietyEdit {
        while true {
            if let edit = attempt(society, scope, next, &stream) { return edit }
        }
    }

    private static func attempt(
        _ society: Society,
        _ scope: Scope,
        _ next: () -> Int64,
        _ stream: inout SeededStream
    ) -> SocietyEdit? {
        let people = society.people.keys.sorted()
        if scope == .all || scope == .reversible {
            if people.count < 5 || stream.chance(0.06) {
                return .newPerson(
                    next(),
                    style: stream.chance(0.4) ? Int64(stream.below(4)) : nil,
                    rank: Int64(stream.below(4))
                )
            }
            if society.tools.count < 3 { return .newTool(next()) }
            if society.clubs.count < 4 || stream.chance(0.03) { return .newClub(next()) }
            if stream.chance(0.15) { return deletion(society, scope, &stream) }
            if stream.chance(0.08) {
                let (tool, weight) = (stream.pick(society.tools.keys.sorted()), Int64(stream.below(4)))
                return society.tools[tool] == weight ? nil : .weight(tool, weight)
            }
        }
        if people.isEmpty { return nil }
        let one = stream.pick(people)
        if scope == .values || stream.chance(0.35) { return value(of: one, society, &stream) }
        return relation(of: one, stream.pick(people), society, &stream)
    }

    private static func deletion(_ society: Society, _ scope: Scope, _ stream: inout SeededStream) -> SocietyEdit? {
        let (people, tools, clubs) = (society.people.count, society.tools.count, society.clubs.count)
        switch stream.below(3) {
        case 0 where people > 5: return .deletePerson(stream.pick(society.people.keys.sorted()))
        case 1 where tools > 2:
            let tool = stream.pick(society.tools.keys.sorted())
            return scope == .reversible && society.owner(of: tool) != nil ? nil : .deleteTool(tool)
        case 2 where clubs > 2: return .deleteClub(stream.pick(society.clubs.keys.sorted()))
        default: return nil
        }
    }

    private static func value(of serial: Int64, _ society: Society, _ stream: inout SeededStream) -> SocietyEdit? {
        guard let person = society.people[serial] else { return nil }
        switch stream.below(8) {
        case 0, 1, 2:
            let rank = Int64(stream.below(4))
            return rank == person.rank ? nil : .rank(serial, rank)
        case 3, 4:
            let name: String? = stream.chance(0.4) ? nil : stream.pick(["a", "b", "c"])
            return name == person.name ? nil : .name(serial, name)
        case 5:
            let style = Int64(stream.below(4))
            return person.style == nil || person.style == style ? nil : .style(serial, style)
        case 6:
            let code: String? = stream.chance(0.2) ? nil : stream.pick(["p", "q", "r", "s", "t"])
            if let holder = society.people.first(where: { $1.code != nil && $1.code == code })?.key {
                return holder == serial || person.code == nil ? nil : .swapCodes(serial, holder)
            }
            return code == person.code ? nil : .code(serial, code)
        default:
            // A large portrait costs a sync of its file.
            let number = stream.chance(0.1) ? 4 : Int64(stream.below(4))
            return number == person.portrait ? nil : .portrait(serial, number)
        }
    }

    private static func relation(
        of one: Int64,
        _ other: Int64,
        _ society: Society,
        _ stream: inout SeededStream
    ) -> SocietyEdit? {
        guard let person = society.people[one] else { return nil }
        switch stream.below(12) {
        case 0, 1:
            if person.teacher == other || one == other { return person.teacher == 0 ? nil : .teach(one, 0) }
            return .teach(one, other)
        case 2:
            if person.teacher == other || one == other { return nil }
            return .place(one, other, stream.below((society.people[other]?.pupils.count ?? 0) + 1))
        case 3:
            let order = person.pupils.shuffled(using: &stream)
            return order == person.pupils ? nil : .shuffle(one, order)
        case 4, 5:
            if one == other { return nil }
            return person.friends.contains(other) ? .part(one, other) : .befriend(one, other)
        case 6:
            guard one != other, !person.friends.contains(other), let former = person.friends.min() else { return nil }
            return .exchange(one, former, other)
        case 7, 8:
            guard let tool = society.tools.keys.sorted().randomElement(using: &stream) else { return nil }
            return society.owner(of: tool).map { .drop(tool, $0) } ?? .give(tool, one)
        case 9:
            let clubs = society.clubs.keys.sorted()
            guard clubs.count > 1 else { return nil }
            let club = stream.pick(clubs)
            // Only older clubs lead, so that there is no ring.
            let head = stream.chance(0.3) ? 0 : stream.pick(clubs)
            return head >= club || society.clubs[club]?.head == head ? nil : .lead(club, head)
        default:
            guard let club = society.clubs.keys.sorted().randomElement(using: &stream) else { return nil }
            if person.clubs.contains(club) { return .leave(one, club) }
            let count = society.clubs[club]?.members.count ?? 0
            return stream.chance(0.5) ? .join(one, club) : .enter(one, club, stream.below(count + 1))
        }
    }

    /// The people that the change changes or deletes.
    var people: Set<Int64> {
        switch self {
        case .newPerson(let one, _, _), .rank(let one, _), .name(let one, _), .style(let one, _), .code(let one, _),
            .portrait(let one, _), .shuffle(let one, _), .give(_, let one), .drop(_, let one), .join(let one, _),
            .enter(let one, _, _), .leave(let one, _), .deletePerson(let one):
            [one]
        case .swapCodes(let one, let other), .teach(let one, let other), .place(let one, let other, _),
            .befriend(let one, let other), .part(let one, let other):
            [one, other]
        case .exchange(let one, let other, let third): [one, other, third]
        default: []
        }
    }
}
