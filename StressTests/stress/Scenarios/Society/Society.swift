/// People and their things, kept in dictionaries.
///
/// It shares no code with the framework.
///
/// Serial numbers stand for all objects, and 0 stands for none.
struct Society: Equatable {
    struct Person: Equatable {
        /// Only artists have one.
        var style: Int64?
        var rank: Int64 = 0
        var name: String?
        var code: String?
        /// The number of the portrait.
        var portrait: Int64 = 0
        var teacher: Int64 = 0
        var pupils: [Int64] = []
        var friends: Set<Int64> = []
        var tools: Set<Int64> = []
        var clubs: Set<Int64> = []
    }

    struct Club: Equatable {
        var rank: Int64 = 0
        var head: Int64 = 0
        var branches: Set<Int64> = []
        var members: [Int64] = []
    }

    var people: [Int64: Person] = [:]
    var clubs: [Int64: Club] = [:]
    /// The weight of each tool.
    var tools: [Int64: Int64] = [:]

    /// The owner of a tool.
    func owner(of tool: Int64) -> Int64? { people.first { $0.value.tools.contains(tool) }?.key }

    // MARK: - Relationships

    /// Gives a pupil a teacher, or none with 0, behind the other pupils or at a place among them.
    mutating func teach(_ pupil: Int64, _ teacher: Int64, at place: Int? = nil) {
        let former = people[pupil]?.teacher ?? 0
        people[former]?.pupils.removeAll { $0 == pupil }
        people[pupil]?.teacher = teacher
        let end = people[teacher]?.pupils.count ?? 0
        people[teacher]?.pupils.insert(pupil, at: min(place ?? end, end))
    }

    mutating func befriend(_ one: Int64, _ other: Int64) {
        people[one]?.friends.insert(other)
        people[other]?.friends.insert(one)
    }

    mutating func part(_ one: Int64, _ other: Int64) {
        people[one]?.friends.remove(other)
        people[other]?.friends.remove(one)
    }

    /// Adds a member to a club, at the end or at a place.
    mutating func join(_ person: Int64, _ club: Int64, at place: Int? = nil) {
        people[person]?.clubs.insert(club)
        let end = clubs[club]?.members.count ?? 0
        clubs[club]?.members.insert(person, at: min(place ?? end, end))
    }

    mutating func leave(_ person: Int64, _ club: Int64) {
        people[person]?.clubs.remove(club)
        clubs[club]?.members.removeAll { $0 == person }
    }

    mutating func lead(_ club: Int64, _ head: Int64) {
        clubs[clubs[club]?.head ?? 0]?.branches.remove(club)
        clubs[club]?.head = head
        clubs[head]?.branches.insert(club)
    }

    // MARK: - Deletions, with the effects of delete rules

    mutating func deletePerson(_ serial: Int64) {
        guard let person = people[serial] else { return }
        teach(serial, 0)
        for pupil in person.pupils { people[pupil]?.teacher = 0 }
        for friend in person.friends { people[friend]?.friends.remove(serial) }
        for club in person.clubs { clubs[club]?.members.removeAll { $0 == serial } }
        people[serial] = nil
    }

    mutating func deleteTool(_ serial: Int64) {
        if let owner = owner(of: serial) { people[owner]?.tools.remove(serial) }
        tools[serial] = nil
    }

    mutating func deleteClub(_ serial: Int64) {
        guard let club = clubs[serial] else { return }
        clubs[club.head]?.branches.remove(serial)
        for member in club.members { people[member]?.clubs.remove(serial) }
        clubs[serial] = nil
        for branch in club.branches { deleteClub(branch) }
    }

    // MARK: - Comparing

    /// The first difference from the expected society; `nil` if there is none.
    func difference(from wanted: Society) -> String? {
        if self == wanted { return nil }
        func first<Value: Equatable>(_ kind: String, _ own: [Int64: Value], _ other: [Int64: Value]) -> String? {
            for serial in Set(own.keys).union(other.keys).sorted() where own[serial] != other[serial] {
                func text(_ value: Value?) -> String { value.map { "\($0)" } ?? "nothing" }
                return "\(kind) \(serial) is \(text(own[serial])), expected \(text(other[serial]))"
            }
            return nil
        }
        return first("person", people, wanted.people) ?? first("club", clubs, wanted.clubs)
            ?? first("tool", tools, wanted.tools)
    }

    /// A person who has this one as a pupil without being the teacher, or the other way round; `nil` if there is
    /// none.
    func stranger(to serial: Int64) -> Int64? {
        guard let person = people[serial] else { return nil }
        return people.keys.sorted().first { other in
            people[other]?.pupils.contains(serial) != (person.teacher == other)
        }
    }

    /// The first relationship whose two sides disagree; `nil` if there is none.
    var disagreement: String? {
        for (serial, person) in people {
            if person.teacher != 0, people[person.teacher]?.pupils.filter({ $0 == serial }).count != 1 {
                return "\(serial) is not once a pupil of \(person.teacher)"
            }
            if let pupil = person.pupils.first(where: { people[$0]?.teacher != serial }) {
                return "\(pupil) is a pupil of \(serial), who is not the teacher"
            }
            if let friend = person.friends.first(where: { people[$0]?.friends.contains(serial) != true }) {
                return "\(serial) is a friend of \(friend), and not the other way round"
            }
            if let club = person.clubs.first(where: { clubs[$0]?.members.filter { $0 == serial }.count != 1 }) {
                return "\(serial) is not once a member of club \(club)"
            }
        }
        for (serial, club) in clubs {
            if let member = club.members.first(where: { people[$0]?.clubs.contains(serial) != true }) {
                return "\(member) is a member of club \(serial), and does not know"
            }
            if club.head != 0, clubs[club.head]?.branches.contains(serial) != true {
                return "club \(serial) is no branch of its head \(club.head)"
            }
        }
        return nil
    }
}
