import CoreData

/// A model with an attribute of every type and a relationship of every kind, and inheritance on both ends.
package enum EveryKindModel {
    package static func make() -> NSManagedObjectModel {
        let person = StoreModels.entity("Person", attributes)
        let employee = StoreModels.entity(
            "Employee",
            [StoreModels.attribute("level", .integer16), StoreModels.attribute("title", .string)]
        )
        let manager = StoreModels.entity("Manager", [StoreModels.attribute("budget", .decimal)])
        let guest = StoreModels.entity("Guest", [StoreModels.attribute("title", .string)])
        let item = StoreModels.entity(
            "Item",
            [
                StoreModels.attribute("title", .string), StoreModels.attribute("price", .double),
                StoreModels.attribute("count", .integer32), StoreModels.attribute("added", .date),
            ]
        )
        let gadget = StoreModels.entity("Gadget", [StoreModels.attribute("volts", .integer16)])
        let club = StoreModels.entity(
            "Club",
            [StoreModels.attribute("name", .string), StoreModels.attribute("fee", .decimal)]
        )
        let note = StoreModels.entity("Note", [StoreModels.attribute("text", .string)])
        let passport = StoreModels.entity(
            "Passport",
            [StoreModels.attribute("code", .uuid), StoreModels.attribute("until", .date)]
        )
        for root in [person, item, club, note, passport] {
            // Unlike a key, a number that does not change when its object is saved.
            root.properties.append(StoreModels.attribute("serial", .integer64))
        }
        person.subentities = [employee, guest]
        employee.subentities = [manager]
        item.subentities = [gadget]

        // One to many; the destination has sub-entities and is one.
        relate(person, StoreModels.toOne("boss", employee), employee, StoreModels.toMany("reports", person))
        relate(
            item,
            StoreModels.toOne("owner", person),
            person,
            StoreModels.toMany("items", item, isOrdered: true)
        )
        // One to one.
        relate(person, StoreModels.toOne("passport", passport), passport, StoreModels.toOne("holder", person))
        // Many to many: plain, ordered at one end, within one entity, its own inverse.
        relate(person, StoreModels.toMany("clubs", club), club, StoreModels.toMany("members", person, isOrdered: true))
        relate(person, StoreModels.toMany("friends", person), person, StoreModels.toMany("friendOf", person))
        let peers = StoreModels.toMany("peers", employee)
        employee.properties.append(peers)
        peers.inverseRelationship = peers
        // Without an inverse.
        person.properties.append(StoreModels.toOne("favourite", item))
        club.properties.append(StoreModels.toMany("notes", note))
        return StoreModels.model(person, employee, manager, guest, item, gadget, club, note, passport)
    }

    private static var attributes: [NSAttributeDescription] {
        let address = NSCompositeAttributeDescription()
        address.name = "address"
        address.elements = [StoreModels.attribute("street", .string), StoreModels.attribute("number", .integer32)]
        return [
            StoreModels.attribute("flag", .boolean), StoreModels.attribute("small", .integer16),
            StoreModels.attribute("middle", .integer32), StoreModels.attribute("big", .integer64),
            StoreModels.attribute("ratio", .double), StoreModels.attribute("single", .float),
            StoreModels.attribute("wage", .decimal), StoreModels.attribute("born", .date),
            StoreModels.attribute("name", .string), StoreModels.attribute("nick", .string),
            StoreModels.attribute("site", .uri), StoreModels.attribute("uid", .uuid),
            StoreModels.attribute("photo", .binaryData), StoreModels.attribute("scan", .binaryData, isExternal: true),
            StoreModels.attribute("extra", .transformable), address,
        ]
    }

    private static func relate(
        _ first: NSEntityDescription,
        _ there: NSRelationshipDescription,
        _ second: NSEntityDescription,
        _ back: NSRelationshipDescription
    ) {
        first.properties.append(there)
        second.properties.append(back)
        StoreModels.connect(there, back)
    }
}
