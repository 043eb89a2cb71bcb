/// The name of a class of managed objects, with its module, for ``NSEntityDescription/managedObjectClassName``.
///
/// For classes of managed objects the compiler prefers this function to Foundation's of the same name. It also takes
/// classes that are private or inside other types, with which Foundation's function stops the program on Linux. The
/// first call of Foundation's function takes some ten milliseconds, because it makes the names of all of Foundation's
/// classes. This function makes only one name.
///
/// ```swift
/// let entity = NSEntityDescription()
/// entity.name = "Venue"
/// entity.managedObjectClassName = NSStringFromClass(Venue.self)
/// ```
///
/// Any thread may call it.
///
/// - Parameter aClass: A class of managed objects.
/// - Returns: The name, such as `Guide.Venue`, or `Guide.Town.Venue` for a class inside another type.
/// - Complexity: O(length of the name).
public func NSStringFromClass(_ aClass: NSManagedObject.Type) -> String { ManagedClasses.fullName(of: aClass) }
