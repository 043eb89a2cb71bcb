import CoreData
import TestSupport

/// A model for what a tree does with hooks and with relationships that have no inverse.
enum TreeModel {
    static func make() -> NSManagedObjectModel {
        let note = GuideModel.entity("Note", Note.self)
        note.properties = [
            GuideModel.attribute("text", .string), GuideModel.transient("draft", .string),
            GuideModel.relationship("next", .one(.nullifyDeleteRule), note),
            GuideModel.relationship("pages", .many(.nullifyDeleteRule), note),
        ]
        let model = NSManagedObjectModel()
        model.entities = [note]
        return model
    }
}

/// Tells which hooks were called, and in which context.
@ManagedObject
final class Note: NSManagedObject {
    @TaskLocal static var log: Shared<[String]>?

    @Managed var text: String?
    @Managed var draft: String?
    @Managed var next: Note?
    @Managed var pages: Set<Note>

    private var place: String { managedObjectContext?.name ?? "nowhere" }

    private func tell(_ what: String) {
        let line = "\(what) \(place)"
        Self.log?.update { $0.append(line) }
    }

    override func awakeFromInsert() {
        super.awakeFromInsert()
        text = "awake in \(place)"
        tell("insert")
    }
    override func willSave() { tell("willSave") }
    override func didSave() { tell("didSave") }
    override func prepareForDeletion() { tell("delete") }
}
