import CoreData

/// The part of the model with every kind of relationship and attribute.
///
/// People have ordered pupils, and are friends of each other. Tools do not know their owners. Clubs have ordered
/// members, and branches that are deleted with them.
enum SocietyModel {
    static func make() -> [NSEntityDescription] {
        let person = NSEntityDescription.keeping("Person", Person.self, ["serial", "rank"], texts: ["name", "code"])
        let artist = NSEntityDescription.keeping("Artist", Artist.self, ["style"])
        let tool = NSEntityDescription.keeping("Tool", Tool.self, ["serial", "weight"])
        let club = NSEntityDescription.keeping("Club", Club.self, ["serial", "rank"])
        person.keepOutside("portrait")
        person.uniquenessConstraints = [["code"]]
        person.subentities = [artist]
        person.relate("teacher", to: person, "pupils", inverseIsMany: true)
        person.relate("clubs", to: club, "members", isMany: true, inverseIsMany: true)
        club.relate("head", to: club, "branches", inverseIsMany: true, inverseRule: .cascadeDeleteRule)
        person.relationshipsByName["pupils"]?.isOrdered = true
        club.relationshipsByName["members"]?.isOrdered = true
        let friends = NSRelationshipDescription()
        (friends.name, friends.destinationEntity, friends.maxCount) = ("friends", person, 0)
        friends.deleteRule = .nullifyDeleteRule
        friends.inverseRelationship = friends
        let tools = NSRelationshipDescription()
        (tools.name, tools.destinationEntity, tools.maxCount) = ("tools", tool, 0)
        tools.deleteRule = .nullifyDeleteRule
        person.properties += [friends, tools]
        let badge = NSEntityDescription.keeping("Badge", Badge.self, ["serial"])
        let holder = NSRelationshipDescription()
        (holder.name, holder.destinationEntity, holder.maxCount) = ("holder", person, 1)
        (holder.deleteRule, holder.isOptional) = (.nullifyDeleteRule, true)
        badge.properties.append(holder)
        return [person, artist, tool, club, badge]
    }
}

/// A person.
@ManagedObject
class Person: NSManagedObject {
    @Managed var serial: Int64
    /// It has few different values, so that sort orders need their last key.
    @Managed var rank: Int64
    /// It is set and cleared.
    @Managed var name: String?
    /// It is unique.
    @Managed var code: String?
    /// Large portraits are in separate files.
    @Managed var portrait: Data?
    @Managed var teacher: Person?
    /// They are ordered.
    @Managed var pupils: [Person]
    /// The relationship is its own inverse.
    @Managed var friends: Set<Person>
    /// The relationship has no inverse.
    @Managed var tools: Set<Tool>
    @Managed var clubs: Set<Club>
}

/// A person with an additional attribute.
@ManagedObject
final class Artist: Person {
    @Managed var style: Int64
}

/// A tool, which one person at a time has.
@ManagedObject
final class Tool: NSManagedObject {
    @Managed var serial: Int64
    @Managed var weight: Int64
}

/// A badge, which leads to one person; the relationship has no inverse.
@ManagedObject
final class Badge: NSManagedObject {
    @Managed var serial: Int64
    @Managed var holder: Person?
}

/// A club with members in an order.
@ManagedObject
final class Club: NSManagedObject {
    @Managed var serial: Int64
    @Managed var rank: Int64
    @Managed var members: [Person]
    @Managed var head: Club?
    /// They are deleted with the club.
    @Managed var branches: Set<Club>
}
