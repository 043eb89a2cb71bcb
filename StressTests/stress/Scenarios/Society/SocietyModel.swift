import CoreData

/// The part of the model in which everything is that a relationship or an attribute can be: people with ordered pupils, friends of
/// each other, tools that do not know whose they are, clubs with ordered members and with branches that go with them.
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

/// Somebody.
@ManagedObject
class Person: NSManagedObject {
    @Managed var serial: Int64
    /// Few different values, so that orders need their last key.
    @Managed var rank: Int64
    /// Given and cleared.
    @Managed var name: String?
    /// Unique.
    @Managed var code: String?
    /// Large ones are in files of their own.
    @Managed var portrait: Data?
    @Managed var teacher: Person?
    /// In order.
    @Managed var pupils: [Person]
    /// Their own inverse.
    @Managed var friends: Set<Person>
    /// Without an inverse.
    @Managed var tools: Set<Tool>
    @Managed var clubs: Set<Club>
}

/// A person with something of its own.
@ManagedObject
final class Artist: Person {
    @Managed var style: Int64
}

/// What one person has at a time.
@ManagedObject
final class Tool: NSManagedObject {
    @Managed var serial: Int64
    @Managed var weight: Int64
}

/// What leads to one person, who does not know.
@ManagedObject
final class Badge: NSManagedObject {
    @Managed var serial: Int64
    @Managed var holder: Person?
}

/// What people are in, and in what order.
@ManagedObject
final class Club: NSManagedObject {
    @Managed var serial: Int64
    @Managed var rank: Int64
    @Managed var members: [Person]
    @Managed var head: Club?
    /// Go with it.
    @Managed var branches: Set<Club>
}
