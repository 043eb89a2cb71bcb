import CoreData

/// A context in which a society is read and changed.
final class SocietyDesk {
    let context: NSManagedObjectContext
    /// The objects that it holds.
    private var objects: [Int64: NSManagedObject] = [:]
    /// The IDs of stored objects.
    private let ids: (Int64) -> NSManagedObjectID?

    /// Makes a desk for a context.
    ///
    /// - Parameters:
    ///   - context: The context.
    ///   - ids: Returns the IDs that stored objects have with the context's coordinator.
    init(_ context: NSManagedObjectContext, _ ids: @escaping (Int64) -> NSManagedObjectID?) {
        (self.context, self.ids) = (context, ids)
    }

    func perform<R>(_ body: () throws -> R) rethrows -> R { try context.performAndWait(body) }

    /// The object with that number, inside the context's scope.
    func object<Object: NSManagedObject>(_ serial: Int64, _ type: Object.Type) throws -> Object {
        if let held = objects[serial] as? Object, held.managedObjectContext != nil { return held }
        guard let id = ids(serial), let object = try context.existingObject(with: id) as? Object else {
            throw StressError("\(serial) is no \(type)")
        }
        objects[serial] = object
        return object
    }

    func person(_ serial: Int64) throws -> Person { try object(serial, Person.self) }

    func club(_ serial: Int64) throws -> Club { try object(serial, Club.self) }

    func tool(_ serial: Int64) throws -> Tool { try object(serial, Tool.self) }

    /// The ID of an object that it holds.
    func heldID(_ serial: Int64) -> NSManagedObjectID? { objects[serial]?.objectID }

    /// Releases all objects that it holds.
    func letGo() { objects = [:] }

    /// Everything that the context shows, as it is after an event.
    func picture() throws -> Society {
        var society = Society()
        for person in try context.fetch(NSFetchRequest<Person>(entityName: "Person")) {
            objects[person.serial] = person
            society.people[person.serial] = Self.picture(of: person)
        }
        for club in try context.fetch(NSFetchRequest<Club>(entityName: "Club")) {
            objects[club.serial] = club
            society.clubs[club.serial] = Society.Club(
                rank: club.rank,
                head: club.head?.serial ?? 0,
                branches: Set(club.branches.map(\.serial)),
                members: club.members.map(\.serial)
            )
        }
        for tool in try context.fetch(NSFetchRequest<Tool>(entityName: "Tool")) {
            objects[tool.serial] = tool
            society.tools[tool.serial] = tool.weight
        }
        return society
    }

    private static func picture(of person: Person) -> Society.Person {
        // Without an inverse, a deleted tool stays in the relationship until the save.
        let tools = person.tools.filter { !$0.isDeleted }.map { $0.managedObjectContext == nil ? -1 : $0.serial }
        return Society.Person(
            style: (person as? Artist)?.style,
            rank: person.rank,
            name: person.name,
            code: person.code,
            portrait: SocietyPortrait.number(of: person.portrait),
            teacher: person.teacher?.serial ?? 0,
            pupils: person.pupils.map(\.serial),
            friends: Set(person.friends.map(\.serial)),
            tools: Set(tools),
            clubs: Set(person.clubs.map(\.serial))
        )
    }

    /// Makes a change, as a separate event.
    func make(_ edit: SocietyEdit) throws {
        switch edit {
        case .newPerson(let serial, let style, let rank):
            let person: Person
            if let style {
                let artist = Artist(context: context)
                artist.style = style
                person = artist
            } else {
                person = Person(context: context)
            }
            (person.serial, person.rank) = (serial, rank)
            try keep(person, serial)
        case .newTool(let serial):
            let tool = Tool(context: context)
            tool.serial = serial
            try keep(tool, serial)
        case .newClub(let serial):
            let club = Club(context: context)
            club.serial = serial
            try keep(club, serial)
        case .rank(let serial, let rank): try person(serial).rank = rank
        case .name(let serial, let name): try person(serial).name = name
        case .style(let serial, let style): try object(serial, Artist.self).style = style
        case .code(let serial, let code): try person(serial).code = code
        case .swapCodes(let one, let other):
            let (one, other) = (try person(one), try person(other))
            let codes = (one.code, other.code)
            (one.code, other.code) = (codes.1, codes.0)
        case .portrait(let serial, let number): try person(serial).portrait = SocietyPortrait.data(number)
        case .weight(let serial, let weight): try tool(serial).weight = weight
        case .deletePerson(let serial): context.delete(try person(serial))
        case .deleteTool(let serial): context.delete(try tool(serial))
        case .deleteClub(let serial): context.delete(try club(serial))
        default: try relate(edit)
        }
        context.processPendingChanges()
    }

    /// Holds a new object.
    ///
    /// Every third one gets a permanent ID before it is saved.
    private func keep(_ object: NSManagedObject, _ serial: Int64) throws {
        objects[serial] = object
        if serial % 3 == 0 { try context.obtainPermanentIDs(for: [object]) }
    }

    private func relate(_ edit: SocietyEdit) throws {
        switch edit {
        case .teach(let pupil, let teacher):
            // A pupil who comes back to a list that is not loaded gets the former place.
            let former = try person(pupil).committedValues(forKeys: ["teacher"])["teacher"] as? Person
            if teacher != 0, try former === person(teacher) { _ = try person(teacher).pupils.count }
            try person(pupil).teacher = teacher == 0 ? nil : person(teacher)
        case .place(let pupil, let teacher, let place):
            try person(teacher).pupils.insert(person(pupil), at: place)
        case .shuffle(let teacher, let order): try person(teacher).pupils = order.map { try person($0) }
        case .befriend(let one, let other): try person(one).friends.insert(person(other))
        case .part(let one, let other): try person(one).friends.remove(person(other))
        case .exchange(let one, let former, let next):
            let person = try person(one)
            person.friends = try person.friends.subtracting([self.person(former)]).union([self.person(next)])
        case .give(let tool, let owner): try person(owner).tools.insert(self.tool(tool))
        case .drop(let tool, let owner): try person(owner).tools.remove(self.tool(tool))
        case .join(let one, let club):
            let former = try person(one).committedValues(forKeys: ["clubs"])["clubs"] as? Set<Club>
            if try former?.contains(self.club(club)) == true { _ = try self.club(club).members.count }
            try person(one).clubs.insert(self.club(club))
        case .enter(let one, let club, let place): try self.club(club).members.insert(person(one), at: place)
        case .leave(let one, let club): try person(one).clubs.remove(self.club(club))
        case .lead(let club, let head): try self.club(club).head = head == 0 ? nil : self.club(head)
        default: break
        }
    }
}

/// Portraits: small ones, and large ones, which are kept in separate files.
enum SocietyPortrait {
    /// The data for a number: none for 0, and large data for 4 and above.
    static func data(_ number: Int64) -> Data? {
        if number == 0 { return nil }
        return Data(repeating: UInt8(truncatingIfNeeded: number), count: size(number))
    }

    /// The number of data; -1 if the data are not whole.
    static func number(of data: Data?) -> Int64 {
        guard let data, let first = data.first else { return 0 }
        let number = Int64(first)
        return data.count == size(number) && data.last == first ? number : -1
    }

    private static func size(_ number: Int64) -> Int { number < 4 ? 16 : 140_000 }
}
