import CoreData

/// A condition on an item, and whether it holds.
struct PairQuestion {
    let entity: String
    let predicate: NSPredicate
    let isTrue: Bool

    /// Questions about each field; some hold, and some do not.
    static func all(_ seen: PairPicture?, _ name: String) -> [PairQuestion] {
        let picture = seen ?? PairPicture()
        func asked(_ format: String, _ arguments: [Any], _ isTrue: Bool, of entity: String = "Item") -> PairQuestion {
            let predicate = NSPredicate(format: "name == %@ AND (\(format))", argumentArray: [name] + arguments)
            return PairQuestion(entity: entity, predicate: predicate, isTrue: isTrue)
        }
        let (owner, text) = (picture.owner ?? "none", picture.text ?? "none")
        let (part, tag) = (picture.parts.last ?? "none", picture.tags.min() ?? "none")
        return [
            asked("number == %@", [picture.number], true, of: "Thing"),
            asked("number > %@", [picture.number], false),
            asked("text == %@", [text], picture.text != nil),
            asked("owner.name == %@", [owner], picture.owner != nil),
            asked("ANY parts.name == %@", [part], !picture.parts.isEmpty),
            asked("parts.@count == %@", [picture.parts.count], true),
            asked("SUBQUERY(tags, $t, $t.name == %@).@count == 1", [tag], !picture.tags.isEmpty),
            asked("NONE tags.name == %@", [tag], picture.tags.isEmpty),
        ]
    }
}
