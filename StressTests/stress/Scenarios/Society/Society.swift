/// People and what is theirs, told by dictionaries: shares nothing with the framework.
///
/// Everything is named by its serial number; 0 stands for none.
struct Society: Equatable {
    struct Person: Equatable {
        /// Of artists only.
        var style: Int64?
        var rank: Int64 = 0
        var name: String?
        var code: String?
        /// What the portrait is drawn from.
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
    /// Their weights.
    var tools: [Int64: Int64] = [:]

    /// Who has a tool.
    func owner(of tool: Int64) -> Int64? { people.first { $0.value.tools.contains(tool) }?.key }

    // MARK: - Relationships

    /// Gives somebody a teacher, behind those who are there already, or at a place among them; 0 for none.
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

    /// Adds a member to a club, as the last one or at a place.
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

    // MARK: - Deletions, with what their rules do

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

    /// What of this differs from what is expected; `nil` if nothing does.
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

    /// Who has somebody as a pupil without being the teacher, or the other way round; `nil` if nobody.
    func stranger(to serial: Int64) -> Int64? {
        guard let person = people[serial] else { return nil }
        return people.keys.sorted().first { other in
            people[other]?.pupils.contains(serial) != (person.teacher == other)
        }
    }

    /// Where the two ends of a relationship disagree; `nil` if nowhere.
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
